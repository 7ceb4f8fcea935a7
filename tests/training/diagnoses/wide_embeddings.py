"""D12. The layers are packed in four bits; embedding and head stay wide and are most of the bytes.

https://github.com/huggingface/trl/issues/1111: a 3 billion model takes 2.5 GB instead of 1.5.
"""

import torch
from torch import nn

torch.set_default_device("cuda")


class PackedLinear(nn.Module):
    def __init__(self, inner: int, outer: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(inner * outer // 2, 1, dtype=torch.uint8), requires_grad=False)
        self.shape = outer, inner

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = torch.cat([self.weight, self.weight]).view(self.shape).to(x.dtype)
        return nn.functional.linear(x, wide)


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(128_000, 1024)
        self.layers = nn.ModuleList(PackedLinear(1024, 1024) for _ in range(8))
        self.head = nn.Linear(1024, 128_000, bias=False)
        self.requires_grad_(False)
        self.scale = nn.Parameter(torch.ones(1024))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens) * self.scale
        for layer in self.layers:
            x = x + torch.relu(layer(x))
        return self.head(x[:, -1])


model = Model()
optimizer = torch.optim.AdamW([model.scale], lr=1e-3)
for _ in range(3):
    model(torch.randint(0, 128_000, (2, 128))).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
