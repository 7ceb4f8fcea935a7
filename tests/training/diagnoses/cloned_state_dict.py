"""D06. Saving clones every parameter on the card first.

https://github.com/tatsu-lab/stanford_alpaca/issues/65: trains for hours, dies while saving.
"""

import torch
from torch import nn

torch.set_default_device("cuda")


def save_checkpoint(model: nn.Module, optimizer: torch.optim.Optimizer, path: str) -> None:
    copies = [tensor.detach().clone() for tensor in model.state_dict().values()]
    for state in optimizer.state.values():
        copies += [value.clone() for value in state.values()]
    torch.save([tensor.shape for tensor in copies], path)


model = nn.Sequential(*(nn.Linear(4096, 4096) for _ in range(16)))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=False)
for _ in range(3):
    x = torch.randn(64, 4096)
    model(x).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
save_checkpoint(model, optimizer, "/dev/null")
