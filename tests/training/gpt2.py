"""Trains GPT-2 (124 million parameters) from its configuration on random tokens."""

import argparse
import contextlib

import torch
from transformers import GPT2Config, GPT2LMHeadModel


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--sequence", type=int, default=512)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--heads", type=int, default=12)
    parser.add_argument("--vocabulary", type=int, default=50257)
    parser.add_argument("--optimizer", choices=["sgd", "adamw"], default="adamw")
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    options = parser.parse_args()

    torch.manual_seed(0)
    device = torch.device("cuda")
    config = GPT2Config(
        n_layer=options.layers,
        n_embd=options.width,
        n_head=options.heads,
        vocab_size=options.vocabulary,
        bos_token_id=options.vocabulary - 1,
        eos_token_id=options.vocabulary - 1,
    )
    with device:
        model = GPT2LMHeadModel(config)
    model.train()
    if options.optimizer == "sgd":
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    else:
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    precision = contextlib.nullcontext()
    if options.precision == "bf16":
        precision = torch.autocast("cuda", dtype=torch.bfloat16)

    for step in range(options.steps):
        tokens = torch.randint(0, options.vocabulary, (options.batch, options.sequence)).to(device)
        with precision:
            loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
