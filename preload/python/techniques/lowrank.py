"""Adapters by peft, on weights as they are or quantised by bitsandbytes."""

from .refusal import Refusal, number

ATTENTION = ("q_proj", "k_proj", "v_proj", "o_proj", "c_attn", "query", "key", "value", "qkv")


def import_peft():
    try:
        import peft
    except ImportError as missing:
        raise Refusal("peft is not installed; pip install peft") from missing
    return peft


def is_linear(torch, module):
    return isinstance(module, torch.nn.Linear) or type(module).__name__ == "Conv1D"


def adapted(torch, root, targets):
    """Names of the linear layers that get an adapter: all but the head, as peft's "all-linear" has it."""
    head = None
    if hasattr(root, "get_output_embeddings"):
        head = root.get_output_embeddings()
    names = []
    linears = [(n, m) for n, m in root.named_modules() if is_linear(torch, m)]
    if head is None and linears:
        head = linears[-1][1]
    for name, module in linears:
        if module is head:
            continue
        if targets == "attention" and name.rpartition(".")[2] not in ATTENTION:
            continue
        names.append(name)
    if not names:
        raise Refusal("the model has no linear layers to adapt")
    return names


def lora(scene, options):
    rank = number(options, "rank", 16)
    import_peft()

    def change(root):
        inject(scene.torch, root, rank, options.get("targets", "linear"))

    scene.model(change)


def inject(torch, root, rank, targets):
    peft = import_peft()
    names = adapted(torch, root, targets)
    config = peft.LoraConfig(r=rank, lora_alpha=rank, target_modules=names, lora_dropout=0.0)
    for parameter in root.parameters():
        parameter.requires_grad_(False)
    peft.inject_adapter_in_model(config, root)
    for name, parameter in root.named_parameters():
        parameter.requires_grad_("lora_" in name)


def qlora(scene, options):
    rank = number(options, "rank", 16)
    import_peft()
    try:
        import bitsandbytes
    except ImportError as missing:
        raise Refusal("bitsandbytes is not installed; pip install bitsandbytes") from missing

    def change(root):
        torch = scene.torch
        for name in adapted(torch, root, options.get("targets", "linear")):
            parent, _, key = name.rpartition(".")
            holder = root.get_submodule(parent)
            setattr(holder, key, quantised(torch, bitsandbytes, getattr(holder, key)))
        inject(torch, root, rank, options.get("targets", "linear"))

    scene.model(change)


def quantised(torch, bitsandbytes, linear):
    weight = linear.weight
    if type(linear).__name__ == "Conv1D":
        raise Refusal("bitsandbytes quantises nn.Linear, and this model's layers are transformers' Conv1D")
    made = bitsandbytes.nn.Linear4bit(
        linear.in_features,
        linear.out_features,
        bias=linear.bias is not None,
        compute_dtype=torch.bfloat16,
        compress_statistics=True,
        quant_type="nf4",
        device="meta",
    )
    made.weight = bitsandbytes.nn.Params4bit(
        weight.data.cpu(), requires_grad=False, compress_statistics=True, quant_type="nf4", module=made
    )
    made.bias = linear.bias
    device = weight.device
    linear.weight = None
    del weight
    return made.to(device)
