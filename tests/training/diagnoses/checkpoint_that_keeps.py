"""D11. The checkpointing flag reaches one of eight blocks; the others keep everything.

https://github.com/huggingface/diffusers/pull/4474: the flag does not reach a part of the model.
"""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.set_default_device("cuda")


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(512), nn.Linear(512, 2048), nn.Linear(2048, 512)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        # Only the first block is wrapped: the flag reached one of eight.
        x = checkpoint(self.blocks[0], x, use_reentrant=False)
        for block in self.blocks[1:]:
            x = block(x)
        return x


model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for _ in range(3):
    model(torch.randn(16, 1024, 512)).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
