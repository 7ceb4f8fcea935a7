"""D14. Packed samples through attention without a kernel for them: one huge score matrix is asked for.

https://github.com/axolotl-ai-cloud/axolotl/issues/971: tries to allocate 341.70 GiB.
"""

import torch
from torch import nn

torch.set_default_device("cuda")

WIDTH, HEADS, LENGTH = 448, 7, 20_000


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(WIDTH, WIDTH) for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (f(x).view(1, LENGTH, HEADS, -1).transpose(1, 2) for f in (self.q, self.k, self.v))
        return x + (torch.softmax(q @ k.transpose(-1, -2), -1) @ v).transpose(1, 2).reshape(x.shape)


model = nn.Sequential(*(Layer() for _ in range(4)))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for _ in range(2):
    model(torch.randn(1, LENGTH, WIDTH)).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
