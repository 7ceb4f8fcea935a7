"""D17. DataParallel gathers every output on the first card. Needs two devices.

https://github.com/huggingface/transformers/issues/279: 11,151 MB on the first card, far less on the
others.
"""

import torch
from torch import nn

model = nn.DataParallel(nn.Linear(512, 20_000).cuda())
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
for _ in range(3):
    model(torch.randn(8192, 512, device="cuda")).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
