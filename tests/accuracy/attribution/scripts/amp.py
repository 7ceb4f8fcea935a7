"""Trains a convolutional network with autocast to float16 and a GradScaler."""

import torch
from torch import nn
from torch.nn import functional
from torchvision.models import resnet18


def main() -> None:
    torch.manual_seed(0)
    model: nn.Module = resnet18(num_classes=100).cuda().train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    scaler = torch.amp.GradScaler("cuda")
    for step in range(4):
        images = torch.randn(16, 3, 128, 128).cuda(non_blocking=True)
        labels = torch.randint(0, 100, (16,)).cuda(non_blocking=True)
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            output = model(images)
            loss = functional.cross_entropy(output, labels)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
