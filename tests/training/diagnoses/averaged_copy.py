"""D23. A moving average of the weights lies on the card all the time.

https://github.com/mosaicml/composer/pull/1941: an average of the weights doubled the copy.
"""

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel

torch.set_default_device("cuda")

model = nn.Sequential(
    nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 1024)
)
average = AveragedModel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
for _ in range(3):
    model(torch.randn(32, 1024)).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    average.update_parameters(model)
