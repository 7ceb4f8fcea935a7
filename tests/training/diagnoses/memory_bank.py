"""D03. A list of features that nobody empties.

https://github.com/Lightning-AI/pytorch-lightning/issues/12703: 22 % to 68 % of the card in 900
steps.
"""

import torch
from torch import nn

torch.set_default_device("cuda")

model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 256))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
bank = []
for _ in range(30):
    x = torch.randn(8192, 256)
    features = model(x)
    bank.append(features.detach())
    features.square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
