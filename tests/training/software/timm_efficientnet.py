"""Trains a timm model with its optimizer factory, exponential averages and channels_last."""

import timm
import timm.optim
import timm.utils
import torch
from torch import nn


def main() -> None:
    torch.manual_seed(0)
    model = timm.create_model("efficientnet_b0", num_classes=10).to("cuda", memory_format=torch.channels_last)
    average = timm.utils.ModelEmaV2(model, decay=0.99)
    optimizer = timm.optim.create_optimizer_v2(model, opt="adamw", lr=1e-3, weight_decay=0.01)
    scaler = torch.amp.GradScaler("cuda")
    for step in range(3):
        images = torch.randn(8, 3, 96, 96).to("cuda", memory_format=torch.channels_last)
        labels = torch.randint(0, 10, (8,), device="cuda")
        with torch.autocast("cuda", torch.float16):
            loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        average.update(model)
        print(f"step {step} loss {loss.item():.4f} scale {scaler.get_scale():.0f}")


if __name__ == "__main__":
    main()
