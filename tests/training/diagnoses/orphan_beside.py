"""D19. A short run beside an orphan of the one before. Run with VRAMTRACE_SIM_CONTEXT.

https://github.com/pytorch/pytorch/issues/4031: an interrupted run keeps 7.8 of 12.2 GB.
"""

import torch
from torch import nn

torch.set_default_device("cuda")

model = nn.Sequential(*(nn.Linear(2048, 2048) for _ in range(4)))
for _ in range(3):
    model(torch.randn(20_000, 2048)).mean().backward()
    model.zero_grad()
