"""D20. A rented slice: the card's name says 24 GB, the process sees less.

Run with VRAMTRACE_SIM_TOTAL.

https://github.com/huggingface/trl/issues/2864: a "vGPU" rental runs out of memory.
"""

import torch
from torch import nn

torch.set_default_device("cuda")

model = nn.Sequential(*(nn.Linear(4096, 4096) for _ in range(8)))
for _ in range(2):
    model(torch.randn(40_000, 4096)).mean().backward()
    model.zero_grad()
