"""D18. Several communicators over overlapping sets of cards. Needs four devices.

https://github.com/NVIDIA/nccl/issues/864: one communicator takes 1.6 GB, three take 6 GB.
"""

import itertools

import torch

for count in (2, 3, 4):
    for cards in itertools.combinations(range(4), count):
        if 0 in cards:
            torch.cuda.nccl.all_reduce([torch.ones(1024, device=f"cuda:{card}") for card in cards])
model = torch.nn.Linear(2048, 2048).cuda()
for _ in range(2):
    model(torch.randn(4096, 2048, device="cuda")).mean().backward()
    model.zero_grad()
