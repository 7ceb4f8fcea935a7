"""D13. Packed weights under adapters in a small model: the weights were never the problem.

https://github.com/huggingface/peft/issues/1023: QLoRA takes 6.1 GB where LoRA takes 5.5.
"""

import torch
from torch import nn

torch.set_default_device("cuda")


class PackedLinear(nn.Module):
    def __init__(self, inner: int, outer: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(inner * outer // 2, 1, dtype=torch.uint8), requires_grad=False)
        self.shape = outer, inner
        self.lora_A, self.lora_B = nn.Linear(inner, 16, bias=False), nn.Linear(16, outer, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = torch.cat([self.weight, self.weight]).view(self.shape).to(x.dtype)
        return nn.functional.linear(x, wide) + self.lora_B(self.lora_A(x))


model = nn.Sequential(
    PackedLinear(640, 1280), nn.GELU(), PackedLinear(1280, 640), nn.GELU(), PackedLinear(640, 640)
)
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)
for _ in range(3):
    model(torch.randn(8, 3000, 640)).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
