"""D25. State kept in pinned host memory: the host says no. Run with VRAMTRACE_SIM_FAIL=host:3+.

https://github.com/deepspeedai/DeepSpeed/issues/3481: offload works with 1,024 GB of RAM and fails
with less.
"""

import torch

model = torch.nn.Sequential(*(torch.nn.Linear(1024, 1024) for _ in range(8))).cuda()
model(torch.randn(64, 1024, device="cuda")).mean().backward()
state = {name: torch.zeros(p.shape, pin_memory=True) for name, p in model.named_parameters()}
