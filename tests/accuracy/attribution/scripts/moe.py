"""Trains a transformer with experts. Every token has a fixed one: no shape depends on a value."""

import torch
from torch import nn
from torch.nn import functional


class Expert(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.up = nn.Linear(width, 4 * width)
        self.gate = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(functional.silu(self.gate(x)) * self.up(x))


class Experts(nn.Module):
    def __init__(self, width: int, count: int) -> None:
        super().__init__()
        self.router = nn.Linear(width, count)
        self.experts = nn.ModuleList(Expert(width) for _ in range(count))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        shape = x.shape
        x = x.flatten(0, 1)
        weights = self.router(x).softmax(dim=-1)
        outputs = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            chosen = torch.arange(i, len(x), len(self.experts), device=x.device)
            outputs = outputs.index_add(0, chosen, expert(x[chosen]) * weights[chosen, i : i + 1])
        return outputs.view(shape)


class Block(nn.Module):
    def __init__(self, width: int, count: int) -> None:
        super().__init__()
        self.norm_1 = nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, 8, batch_first=True)
        self.norm_2 = nn.LayerNorm(width)
        self.experts = Experts(width, count)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm_1(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.experts(self.norm_2(x))


def main() -> None:
    torch.manual_seed(0)
    width = 384
    model = nn.Sequential(
        nn.Embedding(8192, width), *(Block(width, 4) for _ in range(3)), nn.Linear(width, 8192)
    ).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for step in range(3):
        tokens = torch.randint(0, 8192, (8, 129), device="cuda")
        logits = model(tokens[:, :-1])
        loss = functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
