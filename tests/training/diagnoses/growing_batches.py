"""D01. Every batch is a little larger than the one before, and leaves something in its segment.

https://github.com/pytorch/pytorch/issues/31353: tried to allocate 1.86 GiB with 5.08 GiB cached and unused.
"""

import torch

MIB = 1 << 20
model = torch.nn.Linear(8, 8).cuda()
model(torch.randn(1, 8, device="cuda")).sum().backward()

results = []
for step in range(24):
    size = (1024 + 64 * step) * MIB
    batch = torch.empty(size, dtype=torch.uint8, device="cuda")
    del batch
    features = torch.empty(size - 32 * MIB, dtype=torch.uint8, device="cuda")
    results.append(torch.empty(32 * MIB, dtype=torch.uint8, device="cuda"))
    del features
