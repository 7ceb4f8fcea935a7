"""D21. Benchmark mode tries algorithms at every new input size.

Run with VRAMTRACE_SIM_CUDNN_WORKSPACE.

https://github.com/pytorch/pytorch/issues/3667: benchmark mode runs out of memory.
"""

import torch
from torch import nn

torch.set_default_device("cuda")

torch.backends.cudnn.benchmark = True
model = nn.Sequential(nn.Conv2d(3, 32, 5, padding=2), nn.ReLU(), nn.Conv2d(32, 32, 5, padding=2))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for size in (128, 192, 256):
    model(torch.randn(2, 3, size, size)).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
