"""D14. Attention scores are materialised in every layer.

https://github.com/NVIDIA/Megatron-LM/issues/965: unfused attention adds 4.6 GB a layer at length
4096.
"""

import math

import torch
from torch import nn

torch.set_default_device("cuda")

WIDTH, HEADS, LENGTH, BATCH = 320, 5, 1024, 2


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(x).view(BATCH, LENGTH, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        scores = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(WIDTH // HEADS), -1)
        return x + self.out((scores @ v).transpose(1, 2).reshape(BATCH, LENGTH, WIDTH))


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Attention() for _ in range(6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for _ in range(3):
    model(torch.randn(BATCH, LENGTH, WIDTH)).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
