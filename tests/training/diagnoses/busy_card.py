"""D19. Another process holds five gigabytes.

Run with VRAMTRACE_SIM_CONTEXT, which is what it finds in use.

https://github.com/instructlab/instructlab/issues/2666: out of memory on an L4 while another process
holds 4.97 GiB.
"""

import torch
from torch import nn

torch.set_default_device("cuda")

model = nn.Sequential(*(nn.Linear(4096, 4096) for _ in range(16)))
for _ in range(2):
    model(torch.randn(60_000, 4096)).mean().backward()
    model.zero_grad()
