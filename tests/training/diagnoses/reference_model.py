"""D23. Preference training with a frozen reference beside the policy.

https://github.com/hiyouga/LlamaFactory/issues/4810: DPO runs out of memory.
"""

import copy

import torch
from torch import nn

torch.set_default_device("cuda")

policy = nn.Sequential(*(nn.Linear(2048, 2048) for _ in range(12)))
reference = copy.deepcopy(policy).requires_grad_(False)
optimizer = torch.optim.SGD(policy.parameters(), lr=1e-4)
for _ in range(3):
    x = torch.randn(64, 2048)
    with torch.no_grad():
        target = reference(x)
    (policy(x) - target).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
