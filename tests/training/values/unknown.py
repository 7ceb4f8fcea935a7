"""Trains until the loss no longer falls, and reads a mask that nobody can know."""

import torch
from torch import nn


def main() -> None:
    model = nn.Linear(1024, 1024).to("cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    best, epochs = float("inf"), 0
    for _ in range(8):
        loss = model(torch.randn(64, 1024, device="cuda")).pow(2).mean()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True)
        optimizer.step()
        optimizer.zero_grad()
        if loss.item() > best - 1e-4:
            break
        best, epochs = loss.item(), epochs + 1
    kept = model(torch.randn(2048, 1024, device="cuda"))
    kept = kept[kept > 0]  # a shape that hangs on what a matrix product gave
    print(f"epochs {epochs} kept {kept.numel()}")


if __name__ == "__main__":
    main()
