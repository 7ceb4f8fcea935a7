"""Runs out of memory where the second argument says: load, forward, backward or step. Writes what it knows of
the bytes that are live then to the file named first, and lets the error pass."""

import json
import sys
from pathlib import Path

import torch

WIDTH = 16384  # a weight is 1 GiB
LAYERS = {"load": 40, "forward": 4, "backward": 13, "step": 7}
ROWS = {"forward": 1 << 17}

where = sys.argv[2]
known = []


def note(kind, name, tensor, key="") -> None:
    storage = tensor.untyped_storage()
    known.append([where, kind, name, key, storage.data_ptr(), storage.nbytes()])


layers = [torch.nn.Linear(WIDTH, WIDTH, bias=False, device="meta") for _ in range(LAYERS[where])]
model = torch.nn.Sequential(*layers)
optimizer = None
try:
    model.to_empty(device="cuda")
    optimizer = torch.optim.Adam(model.parameters(), foreach=False)
    for _ in range(2):
        rows = torch.zeros(ROWS.get(where, 16), WIDTH, device="cuda")
        model(rows).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    print("no error")
except torch.cuda.OutOfMemoryError:
    for name, parameter in model.named_parameters():
        if parameter.is_cuda:
            note("PARAMETER", name, parameter)
        if parameter.grad is not None:
            note("GRADIENT", name, parameter.grad)
        for key, value in (
            optimizer.state[parameter] if optimizer and parameter in optimizer.state else {}
        ).items():
            if value.is_cuda:
                note("OPTIMIZER_STATE", name, value, key)
    Path(sys.argv[1]).write_text(json.dumps({"known": known}))
    raise
