"""D03. A running total of the loss keeps the graph of every step.

https://pytorch.org/docs/stable/notes/faq.html: "don't accumulate history across your training
loop".
"""

import torch
from torch import nn

torch.set_default_device("cuda")

model = nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 512))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
total = 0.0
for _ in range(30):
    x = torch.randn(512, 512)
    loss = (model(x) - x).square().mean()
    total = total + loss * loss
    loss.backward(retain_graph=True)
    optimizer.step()
    optimizer.zero_grad()
