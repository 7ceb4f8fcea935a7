"""D15. Every rank builds the whole model on its card and then keeps an eighth.

Run with WORLD_SIZE=8 RANK=0.

https://github.com/pytorch/pytorch/issues/152263: FSDP runs out of memory at the wrap, before any
step.
"""

import torch
from torch import nn

torch.set_default_device("cuda")

model = nn.Sequential(*(nn.Linear(4096, 4096, bias=False) for _ in range(16)))
shards = [nn.Parameter(layer.weight.detach().reshape(-1).chunk(8)[0].clone()) for layer in model]
del model
optimizer = torch.optim.AdamW(shards, lr=1e-4)


class Sharded(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.shards = nn.ParameterList(shards)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return sum((x * shard[:4096]).mean() for shard in self.shards)


trained = Sharded()
for _ in range(3):
    trained(torch.randn(16, 4096)).backward()
    optimizer.step()
    optimizer.zero_grad()
