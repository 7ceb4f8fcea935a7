"""Autocast, pure BF16, and the attention kernel."""


def autocast(scene, options):
    """The recipe of PyTorch's documentation: on from the model's forward to backward()."""
    torch = scene.torch
    open_regions = []

    def enter(arguments, keywords):
        if not open_regions and torch.is_grad_enabled():
            region = torch.autocast("cuda", dtype=torch.bfloat16)
            region.__enter__()
            open_regions.append(region)
        return arguments, keywords

    def leave():
        while open_regions:
            open_regions.pop().__exit__(None, None, None)

    scene.on_forward.append(enter)
    scene.on_backward.append(leave)


def pure_bf16(scene, options):
    """The default type from the start, so that weights are made in it; what was made otherwise follows."""
    torch = scene.torch
    torch.set_default_dtype(torch.bfloat16)

    def change(root):
        root.to(torch.bfloat16)

    def cast(arguments, keywords):
        return [half(a) for a in arguments], {k: half(v) for k, v in keywords.items()}

    def half(value):
        floats = isinstance(value, torch.Tensor) and value.dtype == torch.float32
        return value.to(torch.bfloat16) if floats else value

    scene.model(change)
    scene.on_forward.append(cast)


def sdpa(scene, options):
    from .refusal import Refusal

    def change(root):
        config = getattr(root, "config", None)
        if config is None or not hasattr(root, "set_attn_implementation"):
            raise Refusal("the model has no setting for its attention, as those of transformers have")
        root.set_attn_implementation("sdpa")

    scene.model(change)
