"""D02. A detector's matching cost follows the number of boxes in the batch, which varies and is
bounded.

https://github.com/Intellindust-AI-Lab/DEIMv2/issues/131: 6 to 9 GB over the run, on four RTX 4090.
"""

import random

import torch
from torch import nn

torch.set_default_device("cuda")

random.seed(5)
model = nn.Linear(256, 256)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
queries = torch.randn(8 * 900, 256)
for step in range(60):
    boxes = random.randint(100, 300) * (1 + step // 12)
    targets = torch.randn(boxes, 256)
    cost = torch.cdist(model(queries), targets)
    cost.mean().backward()
    del cost, targets
    optimizer.step()
    optimizer.zero_grad()
