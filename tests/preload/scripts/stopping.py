"""A training loop that a dry run ends. The arguments say how the program behaves when it is told to end:
nothing, "swallow" (catches everything), "hang" (never finishes its clean-up), "save" and "evaluate" (does
both)."""

import sys
import time

import torch

model = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.Adam(model.parameters())
count = [0]


def train() -> None:
    for step in range(1000):
        rows = 8 * (step + 1) if step < 3 else 8
        model(torch.randn(rows, 64, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        count[0] += 1
        if "evaluate" in sys.argv:
            with torch.no_grad():
                model(torch.randn(8, 64, device="cuda"))
        if "save" in sys.argv and step == 1:
            torch.save(model.state_dict(), "model.pt")


try:
    train()
except BaseException as error:
    print("told", type(error).__name__, count[0], flush=True)
    if "hang" in sys.argv:
        time.sleep(600)
    if "swallow" not in sys.argv:
        raise
    train()
finally:
    print("cleaned up", flush=True)
