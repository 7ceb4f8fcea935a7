"""QLoRA: four-bit weights of bitsandbytes under LoRA, its 8-bit optimizer, paged."""

import bitsandbytes as bnb
import torch
from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training
from torch import nn
from transformers import LlamaConfig, LlamaForCausalLM


def quantize(module: nn.Module) -> None:
    for name, child in module.named_children():
        if isinstance(child, nn.Linear) and name != "lm_head":
            four_bit = bnb.nn.Linear4bit(
                child.in_features,
                child.out_features,
                bias=child.bias is not None,
                compute_dtype=torch.bfloat16,
                compress_statistics=True,
                quant_type="nf4",
            )
            four_bit.weight = bnb.nn.Params4bit(
                child.weight.data, requires_grad=False, compress_statistics=True, quant_type="nf4"
            )
            setattr(module, name, four_bit)
        else:
            quantize(child)


def main() -> None:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=8192, hidden_size=512, intermediate_size=1376, num_hidden_layers=2, num_attention_heads=8
    )
    model = LlamaForCausalLM(config).to(torch.bfloat16)
    quantize(model.model)
    model = model.to("cuda")
    model = prepare_model_for_kbit_training(model)
    model = get_peft_model(model, LoraConfig(r=8, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM"))
    optimizer = bnb.optim.PagedAdamW8bit((p for p in model.parameters() if p.requires_grad), lr=1e-4)
    for step in range(3):
        tokens = torch.randint(0, config.vocab_size, (2, 128), device="cuda")
        loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
