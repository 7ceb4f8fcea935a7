"""Trains a ResNet-50 or a ViT-B/16 of torchvision from random weights on random images."""

import argparse
import contextlib

import torch
import torchvision
from torch import nn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=["resnet18", "resnet50", "vit_b_16"], default="resnet50")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--size", type=int, default=224, help="of an image's edge, in pixels")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--optimizer", choices=["sgd", "adamw"], default="sgd")
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    options = parser.parse_args()

    torch.manual_seed(0)
    shape = {"image_size": options.size} if options.model.startswith("vit") else {}
    model = torchvision.models.get_model(options.model, weights=None, **shape).cuda()
    if options.optimizer == "sgd":
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    else:
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    precision = contextlib.nullcontext()
    if options.precision == "bf16":
        precision = torch.autocast("cuda", dtype=torch.bfloat16)

    for step in range(options.steps):
        images = torch.randn(options.batch, 3, options.size, options.size).cuda()
        labels = torch.randint(0, 1000, (options.batch,)).cuda()
        optimizer.zero_grad()
        with precision:
            loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
