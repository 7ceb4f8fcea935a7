"""Doubles the batch of a transformer encoder every step until the device's memory is used up."""

import argparse

import torch
from torch import nn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=16, help="of the first step")
    parser.add_argument("--sequence", type=int, default=256)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--optimizer", choices=["sgd", "adamw"], default="adamw")
    options = parser.parse_args()

    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(options.width, nhead=8, batch_first=True)
    model = nn.TransformerEncoder(layer, options.layers, enable_nested_tensor=False).cuda()
    if options.optimizer == "sgd":
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    else:
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    batch = options.batch
    while True:
        x = torch.randn(batch, options.sequence, options.width).cuda()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"batch {batch} loss {loss.item():.4f}")
        batch *= 2


if __name__ == "__main__":
    main()
