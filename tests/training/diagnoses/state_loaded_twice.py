"""D07. The optimizer's saved state is loaded onto the card and copied into the live one, and both
stay.

https://github.com/NVIDIA/apex/issues/458: a resumed run takes more memory than the first.
"""

import tempfile

import torch
from torch import nn


def resume(optimizer: torch.optim.Optimizer, path: str) -> dict:
    saved = torch.load(path, map_location="cuda")
    optimizer.load_state_dict(saved)
    return saved


model = nn.Sequential(*(nn.Linear(2048, 2048) for _ in range(6))).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9, foreach=False)
model(torch.randn(32, 2048, device="cuda")).mean().backward()
optimizer.step()
optimizer.zero_grad()
saved = optimizer.state_dict()
with tempfile.NamedTemporaryFile() as file:
    torch.save(saved, file.name)
    kept = resume(optimizer, file.name)
for _ in range(3):
    model(torch.randn(512, 2048, device="cuda")).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
