"""Trains with accelerate: fp16 with a gradient scaler, accumulation, clipping, a saved state."""

import sys

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main(folder: str) -> None:
    torch.manual_seed(0)
    accelerator = Accelerator(mixed_precision="fp16", gradient_accumulation_steps=2)
    model = nn.Sequential(nn.Linear(128, 512), nn.GELU(), nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    data = TensorDataset(torch.randn(256, 128), torch.randint(0, 10, (256,)))
    model, optimizer, loader = accelerator.prepare(model, optimizer, DataLoader(data, batch_size=32))
    skipped = 0
    for features, labels in loader:
        with accelerator.accumulate(model):
            loss = nn.functional.cross_entropy(model(features), labels)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            skipped += optimizer.step_was_skipped
            optimizer.zero_grad()
    accelerator.save_state(folder)
    print(f"loss {loss.item():.4f} scale {accelerator.scaler.get_scale():.0f} skipped {skipped}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "accelerate-state")
