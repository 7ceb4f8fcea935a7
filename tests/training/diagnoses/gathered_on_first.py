"""D17. Two replicas; the first card also holds all outputs and the optimizer. Needs two devices.

https://github.com/mkocabas/EpipolarPose/issues/22: 10,761 MB on the first card, 3,651 MB on the
second.
"""

import torch
from torch import nn

model = nn.Sequential(nn.Linear(256, 4096), nn.ReLU(), nn.Linear(4096, 4096)).cuda()
parallel = nn.DataParallel(model)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
for _ in range(3):
    parallel(torch.randn(16_384, 256, device="cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
