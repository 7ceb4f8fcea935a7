"""D11. Reentrant checkpointing over frozen inputs of wrapped blocks, with the blocks' own activations
kept by hooks.

https://github.com/hiyouga/LlamaFactory/issues/9126: no effect: memory is as without checkpointing.
"""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.set_default_device("cuda")

kept = []


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(512), nn.Linear(512, 2048), nn.Linear(2048, 512)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = torch.nn.functional.gelu(self.up(self.norm(x)))
        kept.append(h)
        return x + self.down(h)


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=True)
        return x


model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for _ in range(3):
    x = torch.randn(16, 1024, 512, requires_grad=True)
    model(x).mean().backward()
    kept.clear()
    optimizer.step()
    optimizer.zero_grad()
