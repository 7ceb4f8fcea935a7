"""D09. A hand-written gradient norm makes one flat copy of every gradient.

https://github.com/huggingface/transformers/pull/46113: clipping replicated every gradient, 60 GB
for a moment.
"""

import torch
from torch import nn

torch.set_default_device("cuda")


def clip_grad_norm_(parameters: list, limit: float) -> None:
    flat = torch.cat([parameter.grad.reshape(-1) for parameter in parameters])
    scale = torch.clamp(limit / (flat.square().sum().sqrt() + 1e-6), max=1.0)
    for parameter in parameters:
        parameter.grad.mul_(scale)


model = nn.Sequential(*(nn.Linear(2048, 2048) for _ in range(24)))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
for _ in range(4):
    x = torch.randn(16, 2048)
    model(x).mean().backward()
    clip_grad_norm_(list(model.parameters()), 1.0)
    optimizer.step()
    optimizer.zero_grad()
