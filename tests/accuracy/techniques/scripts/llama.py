"""Trains a Llama of a chosen size from its configuration on random tokens."""

import argparse
import contextlib

import torch
from transformers import LlamaConfig, LlamaForCausalLM


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--sequence", type=int, default=512)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--inner", type=int, default=2816)
    parser.add_argument("--heads", type=int, default=16)
    parser.add_argument("--kv-heads", type=int, default=4)
    parser.add_argument("--vocabulary", type=int, default=32000)
    parser.add_argument("--attention", choices=["sdpa", "eager"], default="sdpa")
    parser.add_argument("--precision", choices=["fp32", "bf16", "pure-bf16"], default="fp32")
    options = parser.parse_args()

    torch.manual_seed(0)
    if options.precision == "pure-bf16":
        torch.set_default_dtype(torch.bfloat16)
    config = LlamaConfig(
        num_hidden_layers=options.layers,
        hidden_size=options.width,
        intermediate_size=options.inner,
        num_attention_heads=options.heads,
        num_key_value_heads=options.kv_heads,
        vocab_size=options.vocabulary,
        attn_implementation=options.attention,
    )
    model = LlamaForCausalLM(config).to("cuda")
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    precision = contextlib.nullcontext()
    if options.precision == "bf16":
        precision = torch.autocast("cuda", dtype=torch.bfloat16)

    for step in range(options.steps):
        tokens = torch.randint(0, options.vocabulary, (options.batch, options.sequence)).to("cuda")
        optimizer.zero_grad()
        with precision:
            loss = model(input_ids=tokens, labels=tokens, use_cache=False).loss
        loss.backward()
        optimizer.step()
        print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
