"""Optimizers as programs really use them: one a parameter inside backward, scaled and skipped steps,
closures, copies and pickles of models and optimizers in between, a step in another thread."""

import copy
import io
import threading

import torch
from torch import nn

device = "cuda"


def backward(model: nn.Module) -> None:
    model(torch.randn(4, 16, device=device)).square().mean().backward()


# One optimizer a parameter, stepped while backward runs.
inside = nn.Sequential(nn.Linear(16, 16), nn.Linear(16, 4)).to(device)
each = {p: torch.optim.Adam([p]) for p in inside.parameters()}


def step_now(parameter: torch.Tensor) -> None:
    each[parameter].step()
    each[parameter].zero_grad()


for parameter in inside.parameters():
    parameter.register_post_accumulate_grad_hook(step_now)
for _ in range(3):
    backward(inside)
print("inside backward")

# A scaler that skips a step: found_inf is forced.
scaled = nn.Linear(16, 4).to(device)
optimizer = torch.optim.SGD(scaled.parameters(), lr=0.1)
scaler = torch.amp.GradScaler(device)
for _ in range(2):
    with torch.autocast(device, dtype=torch.float16):
        loss = scaled(torch.randn(4, 16, device=device)).float().mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
print("scaled")

# A closure that runs forward and backward inside step.
curve = nn.Linear(16, 4).to(device)
lbfgs = torch.optim.LBFGS(curve.parameters(), max_iter=2)


def closure() -> torch.Tensor:
    lbfgs.zero_grad()
    loss = curve(torch.ones(4, 16, device=device)).square().mean()
    loss.backward()
    return loss


for _ in range(2):
    lbfgs.step(closure)
print("closure")

# Copies and pickles.
other = copy.deepcopy(curve)
twin = copy.deepcopy(optimizer)
buffer = io.BytesIO()
torch.save(inside.cpu(), buffer)
buffer.seek(0)
loaded = torch.load(buffer, weights_only=False).to(device)
fresh = torch.optim.AdamW(loaded.parameters())
fresh.load_state_dict(torch.optim.AdamW(loaded.parameters()).state_dict())
for _ in range(2):
    backward(loaded)
    fresh.step()
print("copied", len(list(other.parameters())), len(twin.param_groups))

# Another thread, a scheduler, an optimizer without gradients.
scheduler = torch.optim.lr_scheduler.StepLR(fresh, 1)


def work() -> None:
    backward(loaded)
    fresh.step()
    scheduler.step()


thread = threading.Thread(target=work)
thread.start()
thread.join()
torch.optim.Adam(curve.parameters()).step()
print("done", torch.cuda.memory_stats()["allocation.all.allocated"])
