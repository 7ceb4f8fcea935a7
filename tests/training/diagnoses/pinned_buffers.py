"""D25. Pinning host memory is refused while the card is nearly empty.

Run with VRAMTRACE_SIM_FAIL=host:2+.

https://github.com/vllm-project/vllm-omni/issues/2748: "out of memory" while pinning buffers of 8
GiB.
"""

import torch

model = torch.nn.Linear(1024, 1024).cuda()
model(torch.randn(64, 1024, device="cuda")).mean().backward()
buffers = [torch.empty(64 << 20, dtype=torch.uint8, pin_memory=True) for _ in range(4)]
