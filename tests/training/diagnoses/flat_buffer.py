"""D15. All parameters are copied into one flat buffer on the card before they are sharded.

Run with WORLD_SIZE=4 RANK=0.

https://github.com/deepspeedai/DeepSpeed/pull/7828: flattening needs twice the model.
"""

import torch
from torch import nn

torch.set_default_device("cuda")

model = nn.Sequential(*(nn.Linear(4096, 4096, bias=False) for _ in range(12)))
flat = torch.cat([parameter.detach().reshape(-1) for parameter in model.parameters()])
shard = nn.Parameter(flat.chunk(4)[0].clone())
del model, flat


class Sharded(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.shard = shard

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x * self.shard[:4096]).mean()


trained = Sharded()
optimizer = torch.optim.SGD(trained.parameters(), lr=1e-4)
for _ in range(3):
    trained(torch.randn(16, 4096)).backward()
    optimizer.step()
    optimizer.zero_grad()
