"""D13. Low-rank adapters over a small frozen model at long input: activations dominate.

https://github.com/huggingface/peft/issues/1514: LoRA takes more than full fine-tuning at long
context.
"""

import torch
from torch import nn

torch.set_default_device("cuda")


class Adapted(nn.Module):
    def __init__(self, inner: int, outer: int) -> None:
        super().__init__()
        self.base = nn.Linear(inner, outer).requires_grad_(False)
        self.lora_A, self.lora_B = nn.Linear(inner, 8, bias=False), nn.Linear(8, outer, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.base(x) + self.lora_B(self.lora_A(x))


model = nn.Sequential(Adapted(512, 1536), nn.GELU(), Adapted(1536, 512), nn.GELU(), Adapted(512, 512))
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)
for _ in range(3):
    model(torch.randn(4, 10_000, 512)).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
