"""What must not depend on being recorded: random numbers, results, lifetimes, torch.compile's graphs, weak
references.

Prints one JSON object.
"""

import gc
import json
import random
import weakref

import torch
from torch import nn

said = {}
said["cuda_initialized_by_import"] = torch.cuda.is_initialized()
said["random_after_import"] = [torch.initial_seed() == torch.initial_seed(), random.Random(1).random()]
torch.manual_seed(3)

model = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
for _ in range(6):
    optimizer.zero_grad()
    model(torch.randn(8, 32)).square().mean().backward()
    optimizer.step()
said["weights"] = [p.detach().double().sum().item() for p in model.parameters()]
said["random"] = torch.randn(4).tolist()

# Lifetimes on the device.
base = torch.cuda.memory_allocated()
other = nn.Sequential(nn.Linear(256, 256), nn.Linear(256, 256)).cuda()
steps = torch.optim.Adam(other.parameters())
for _ in range(2):
    other(torch.randn(4, 256, device="cuda")).sum().backward()
    steps.step()
gone = weakref.ref(other), weakref.ref(steps)
del other, steps
said["freed_without_collection"] = torch.cuda.memory_allocated() - base
said["gone_without_collection"] = [reference() is None for reference in gone]
gc.collect()
said["freed"] = torch.cuda.memory_allocated() - base

# Parameters may be swapped: that fails for a tensor which somebody holds a weak reference to.
torch.__future__.set_swap_module_params_on_conversion(True)
swapped = nn.Linear(4, 4).cuda()
swapped(torch.zeros(1, 4, device="cuda")).sum().backward()
torch.optim.SGD(swapped.parameters(), lr=1.0).step()
swapped.half()
said["swapped"] = str(swapped.weight.dtype)

# Graphs.
counts = {"graphs": 0, "nodes": 0}


def backend(graph: torch.fx.GraphModule, inputs: list) -> object:
    counts["graphs"] += 1
    counts["nodes"] += len(graph.graph.nodes)
    return graph.forward


compiled = torch.compile(model, backend=backend)
for _ in range(3):
    compiled(torch.randn(8, 32)).sum().backward()
said["model_graphs"] = dict(counts)
counts["graphs"] = counts["nodes"] = 0
step = torch.compile(optimizer.step, backend=backend)
for _ in range(3):
    step()
said["step_graphs"] = dict(counts)

print(json.dumps(said))
