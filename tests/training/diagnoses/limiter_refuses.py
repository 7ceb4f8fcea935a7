"""D20. A limiter refuses while the card has room.

Run with VRAMTRACE_SIM_FAIL and the limiter's variable.

https://github.com/Project-HAMi/HAMi/issues/662: a hard limit of 3,145,728,000 bytes inside a slice.
"""

import torch
from torch import nn

torch.set_default_device("cuda")

model = nn.Linear(4096, 4096)
for step in range(20):
    model(torch.randn(20_000 * (step + 1), 4096)).mean().backward()
    model.zero_grad()
