"""D04. Every sample is short but one, at step 37: out of memory there.

https://github.com/unslothai/unsloth/issues/1391: 14 GB, then 20 GB at step 70, then out of memory
at step 120.
"""

import torch
from torch import nn

torch.set_default_device("cuda")


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(1024, 4096), nn.Linear(4096, 1024)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(torch.nn.functional.gelu(self.up(x)))


model = nn.Sequential(*(Block() for _ in range(8)))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
for step in range(45):
    length = 8192 if step == 37 else 1024
    x = torch.randn(8, length, 1024)
    model(x).mean().backward()
    del x
    optimizer.step()
    optimizer.zero_grad()
