"""D05. Validation runs with many times the training batch, at full resolution.

https://github.com/WongKinYiu/yolor/issues/199: the script multiplies the validation batch.
"""

import torch
from torch import nn

torch.set_default_device("cuda")


def validate(model: nn.Module, batch: int) -> None:
    model.eval()
    with torch.no_grad():
        for _ in range(2):
            model(torch.randn(batch, 3, 512, 512))
    model.train()


model = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3, padding=1))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for step in range(4):
    model(torch.randn(2, 3, 256, 256)).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    if step % 2 == 1:
        validate(model, 32)
