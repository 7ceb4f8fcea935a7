"""D18. A library takes a buffer of its own from the driver, which PyTorch's counters do not show.

https://github.com/NVIDIA/nccl/issues/2363: a communicator of one rank takes 512 MiB.
"""

import ctypes

import torch

model = torch.nn.Linear(2048, 2048).cuda()
runtime = ctypes.CDLL(None)  # the process has the runtime already
for _ in range(4):
    runtime.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(512 << 20))
for _ in range(2):
    model(torch.randn(4096, 2048, device="cuda")).mean().backward()
    model.zero_grad()
