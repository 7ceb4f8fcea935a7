"""D12. The experts are one 3-D parameter, which the quantiser passes over.

https://github.com/bitsandbytes-foundation/bitsandbytes/issues/1849: mixture-of-experts weights
silently stay 16-bit.
"""

import torch
from torch import nn

torch.set_default_device("cuda")


class PackedLinear(nn.Module):
    def __init__(self, inner: int, outer: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(inner * outer // 2, 1, dtype=torch.uint8), requires_grad=False)
        self.shape = outer, inner

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = torch.cat([self.weight, self.weight]).view(self.shape).to(x.dtype)
        return nn.functional.linear(x, wide)


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = PackedLinear(1024, 1024)
        self.experts = nn.Parameter(torch.zeros(16, 1024, 2048, dtype=torch.bfloat16), requires_grad=False)
        self.adapter = nn.Linear(1024, 1024, dtype=torch.bfloat16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.adapter(self.attention(x))
        return x + torch.relu(x @ self.experts[0]) @ self.experts[1].T


model = nn.Sequential(*(Block() for _ in range(6)))
optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=1e-3)
for _ in range(3):
    model(torch.randn(2, 64, 1024, dtype=torch.bfloat16)).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
