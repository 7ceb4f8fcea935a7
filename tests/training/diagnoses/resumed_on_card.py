"""D07. The checkpoint is loaded onto the card and stays there beside what was made from it.

https://github.com/huggingface/transformers/issues/22123: resuming runs out of memory where a fresh
start fits.
"""

import tempfile

import torch
from torch import nn

model = nn.Sequential(*(nn.Linear(2048, 2048) for _ in range(8))).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
with tempfile.NamedTemporaryFile() as file:
    host = {name: tensor.cpu() for name, tensor in model.state_dict().items()}
    torch.save({"model": host, "exp_avg": host, "step": 1}, file.name)
    checkpoint = torch.load(file.name, map_location="cuda")
model.load_state_dict(checkpoint["model"])
for _ in range(3):
    model(torch.randn(32, 2048, device="cuda")).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
