"""D02. Batches of many sizes: the cache grows to the largest of them and stops.

https://github.com/KaijuML/data-to-text-hierarchical/issues/7: memory "increases" during the first
epoch.
"""

import random

import torch
from torch import nn

torch.set_default_device("cuda")

random.seed(3)
model = nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 512))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(80):
    tokens = random.randint(2000, 4000) + 120 * step
    x = torch.randn(min(tokens, 9000), 512)
    model(x).square().mean().backward()
    del x
    optimizer.step()
    optimizer.zero_grad()
