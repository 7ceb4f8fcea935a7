"""D08. The first forward fits; with Adam's two states the second does not.

https://github.com/pytorch/pytorch/issues/9439: Adam runs out of memory where SGD fits.
"""

import torch
from torch import nn

torch.set_default_device("cuda")

model = nn.Sequential(*(nn.Linear(4096, 4096) for _ in range(12)), nn.Linear(4096, 1000))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, foreach=False)
for _ in range(4):
    x = torch.randn(42_500, 4096)
    model(x).mean().backward()
    del x
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
