"""D01. A large block is cut up for small ones that stay; the next large one finds no room.

https://github.com/pytorch/pytorch/issues/35901: half of the card is held and cannot be used.
"""

import torch

GIB = 1 << 30
model = torch.nn.Linear(8, 8).cuda()
model(torch.randn(1, 8, device="cuda")).sum().backward()

features = torch.empty(11 * GIB, dtype=torch.uint8, device="cuda")  # the first iteration's batch
del features
scratch = torch.empty(5 * GIB, dtype=torch.uint8, device="cuda")
statistics = torch.empty(64 << 20, dtype=torch.uint8, device="cuda")  # stays
del scratch
features = torch.empty(
    8 * GIB, dtype=torch.uint8, device="cuda"
)  # the second iteration's, smaller than the first
