"""Trains a transformer written with nothing but PyTorch, with clipping and gradient accumulation."""

import argparse
import contextlib
import tempfile

import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm_1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm_2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        parts = self.qkv(self.norm_1(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norm_2(x))


class Transformer(nn.Module):
    def __init__(self, vocabulary: int, length: int, width: int, heads: int, layers: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Parameter(torch.zeros(length, width))
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.tokens(tokens) + self.positions[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def in_a_group_of_one(model: nn.Module) -> nn.Module:
    with tempfile.NamedTemporaryFile(delete=False) as store:
        pass
    torch.distributed.init_process_group("nccl", init_method=f"file://{store.name}", rank=0, world_size=1)
    return nn.parallel.DistributedDataParallel(model)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--sequence", type=int, default=512)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--heads", type=int, default=12)
    parser.add_argument("--vocabulary", type=int, default=16384)
    parser.add_argument("--accumulate", type=int, default=1)
    parser.add_argument("--clip", type=float, default=0.0)
    parser.add_argument("--gradients", choices=["none", "zeros", "late"], default="none")
    parser.add_argument("--ddp", action="store_true", help="in a process group of one")
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    options = parser.parse_args()

    torch.manual_seed(0)
    model = Transformer(
        options.vocabulary, options.sequence, options.width, options.heads, options.layers
    ).cuda()
    if options.ddp:
        model = in_a_group_of_one(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    precision = contextlib.nullcontext()
    if options.precision == "bf16":
        precision = torch.autocast("cuda", dtype=torch.bfloat16)

    for step in range(options.steps):
        for _ in range(options.accumulate):
            tokens = torch.randint(0, options.vocabulary, (options.batch, options.sequence + 1)).cuda()
            with precision:
                logits = model(tokens[:, :-1])
                loss = functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
            if options.gradients == "late":
                optimizer.zero_grad()
            (loss / options.accumulate).backward()
            del logits
        if options.clip > 0:
            torch.nn.utils.clip_grad_norm_(model.parameters(), options.clip)
        optimizer.step()
        if options.gradients != "late":
            optimizer.zero_grad(set_to_none=options.gradients == "none")
        print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
