"""D21. One convolution asks for a workspace of gigabytes. Run with VRAMTRACE_SIM_CUDNN_WORKSPACE.

https://github.com/pytorch/pytorch/issues/49207: the workspace took 36 of 40 GB.
"""

import torch
from torch import nn

torch.set_default_device("cuda")

model = nn.Sequential(nn.Conv2d(3, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, 64, 3, padding=1))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for _ in range(3):
    model(torch.randn(4, 3, 256, 256)).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
