"""Trains low-rank adapters on a frozen GPT-2, written out by hand."""

import torch
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel
from transformers.pytorch_utils import Conv1D


class Adapted(nn.Module):
    def __init__(self, base: Conv1D, rank: int) -> None:
        super().__init__()
        inner, outer = base.weight.shape
        self.base = base
        self.down = nn.Linear(inner, rank, bias=False)
        self.up = nn.Linear(rank, outer, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.base(x) + 2 * self.up(self.down(x))


def main() -> None:
    torch.manual_seed(0)
    model = GPT2LMHeadModel(
        GPT2Config(n_layer=6, n_embd=512, n_head=8, vocab_size=8192, bos_token_id=0, eos_token_id=0)
    )
    model.requires_grad_(False)
    for block in model.transformer.h:
        block.attn.c_attn = Adapted(block.attn.c_attn, 16)
        block.mlp.c_fc = Adapted(block.mlp.c_fc, 16)
    model.cuda().train()
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4)
    for step in range(3):
        tokens = torch.randint(0, 8192, (8, 256)).cuda()
        loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
