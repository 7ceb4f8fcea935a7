"""D08. Out of memory while the first step makes its state.

https://github.com/bitsandbytes-foundation/bitsandbytes/issues/801: memory jumps at the first step
of a full fine-tuning.
"""

import torch
from torch import nn

torch.set_default_device("cuda")

model = nn.Sequential(*(nn.Linear(8192, 8192) for _ in range(12)))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
for _ in range(3):
    x = torch.randn(64, 8192)
    model(x).mean().backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
