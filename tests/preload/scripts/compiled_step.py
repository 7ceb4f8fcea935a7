"""Steps inside a compiled function, where no optimizer hook is called; then runs out of memory. Writes what
it knows of the bytes that are live then to the file named in its first argument."""

import json
import sys
from pathlib import Path

import torch

known = []


def note(kind, name, tensor, key="") -> None:
    storage = tensor.untyped_storage()
    known.append(["end", kind, name, key, storage.data_ptr(), storage.nbytes()])


model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 64)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), capturable=True)


@torch.compile(backend="eager")
def step() -> None:
    optimizer.step()


for _ in range(3):
    model(torch.randn(8, 64, device="cuda")).sum().backward()
    step()
    optimizer.zero_grad()

try:
    torch.empty(1 << 40, device="cuda")
except torch.cuda.OutOfMemoryError:
    for name, parameter in model.named_parameters():
        note("PARAMETER", name, parameter)
        for key, value in optimizer.state[parameter].items():
            note("OPTIMIZER_STATE", name, value, key)
    counters = torch._dynamo.utils.counters
    graphs = {"stats": dict(counters["stats"]), "breaks": sum(counters["graph_break"].values())}
    Path(sys.argv[1]).write_text(json.dumps({"known": known, "graphs": graphs}))
