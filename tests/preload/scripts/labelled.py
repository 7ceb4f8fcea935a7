"""An ordinary training script with everything that names have to survive, and its own account of where bytes
lie.

It writes what it knows to the file named in its first argument: [when, kind, name, state key, address,
bytes]."""

import copy
import json
import sys
from pathlib import Path

import torch
from torch import nn

known = []


def note(when, kind, name, tensor, key="") -> None:
    storage = tensor.untyped_storage()
    known.append([when, kind, name, key, storage.data_ptr(), storage.nbytes()])


class Block(nn.Module):
    def __init__(self, width) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width, bias=False)

    def forward(self, x: torch.Tensor, scale: torch.Tensor | None = None) -> torch.Tensor:
        x = x + self.down(torch.relu(self.up(self.norm(x))))
        return x if scale is None else x * scale


class Model(nn.Module):
    def __init__(self, width=64, classes=100) -> None:
        super().__init__()
        self.embed = nn.Embedding(classes, width)
        self.blocks = nn.ModuleList([Block(width) for _ in range(2)])
        self.head = nn.Linear(width, classes, bias=False)
        self.head.weight = self.embed.weight  # tied
        self.frozen = nn.Linear(width, width)
        self.frozen.requires_grad_(False)
        self.register_buffer("table", torch.zeros(width, width))

    def forward(self, tokens: torch.Tensor, scale: torch.Tensor | None = None) -> torch.Tensor:
        x = self.frozen(self.embed(tokens)) + self.table[0]
        for block in self.blocks:
            x = block(x, scale)
        return self.head(x)


def account(when, model, optimizers) -> None:
    for name, buffer in model.named_buffers():
        note(when, "BUFFER", name, buffer)
    for name, parameter in model.named_parameters(remove_duplicate=False):  # a tied one has all its names
        note(when, "PARAMETER", name, parameter)
        if parameter.grad is not None:
            note(when, "GRADIENT", name, parameter.grad)
        state = next((o.state[parameter] for o in optimizers if parameter in o.state), {})
        for key, value in state.items():
            if torch.is_tensor(value) and value.is_cuda:
                note(when, "OPTIMIZER_STATE", name, value, key)


torch.manual_seed(1)
model = Model().cuda()
if "deepcopy" in sys.argv:
    model = copy.deepcopy(model)
if "compile" in sys.argv:
    model.blocks[0] = torch.compile(model.blocks[0], backend="eager")
first = [p for n, p in model.named_parameters() if "blocks.0" in n]
second = [p for n, p in model.named_parameters() if "blocks.0" not in n and p.requires_grad]
optimizers = [torch.optim.AdamW(first), torch.optim.SGD(second, lr=0.1, momentum=0.9)]
for step in range(5):
    tokens = torch.randint(0, 100, (32,), device="cuda")
    for _ in range(2):  # two micro-batches
        model(tokens, scale=torch.ones(1, device="cuda")).square().mean().backward()
    for optimizer in optimizers:
        optimizer.step()
    if step < 3:
        account(f"step {step}", model, optimizers)
    for optimizer in optimizers:
        optimizer.zero_grad()

counts = torch.cuda.memory_stats()
said = json.dumps(
    {
        "known": known,
        "allocations": counts["allocation.all.allocated"],
        "peak_allocated": torch.cuda.max_memory_allocated(),
        "peak_reserved": torch.cuda.max_memory_reserved(),
        "segments": counts["segment.all.allocated"],
        "tokens": list(tokens.shape),
        "rng": torch.randn(3).tolist(),
        "device_rng": torch.cuda.get_rng_state().tolist()[-16:],
    }
)
Path(sys.argv[1]).write_text(said)
