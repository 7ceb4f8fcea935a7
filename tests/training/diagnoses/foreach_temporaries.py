"""D09. The peak is a list of intermediates of the whole model inside Adam's step.

https://github.com/pytorch/pytorch/issues/97712: upgrading to PyTorch 2.0 cost more than a gigabyte.
"""

import torch
from torch import nn

torch.set_default_device("cuda")

model = nn.Sequential(*(nn.Linear(2048, 2048) for _ in range(24)))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
for _ in range(4):
    x = torch.randn(16, 2048)
    model(x).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
