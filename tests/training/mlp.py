"""Trains a multilayer perceptron on random data."""

import argparse
import contextlib

import torch
from torch import nn


class Perceptron(nn.Module):
    def __init__(self, inputs: int, hidden: int, classes: int, layers: int) -> None:
        super().__init__()
        sizes = [inputs] + [hidden] * layers
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))
        self.norm = nn.BatchNorm1d(hidden)
        self.head = nn.Linear(hidden, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = torch.relu(layer(x))
        return self.head(self.norm(x))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--inputs", type=int, default=784)
    parser.add_argument("--hidden", type=int, default=2048)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--optimizer", choices=["sgd", "adamw"], default="adamw")
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    options = parser.parse_args()

    torch.manual_seed(0)
    device = torch.device("cuda")
    model = Perceptron(options.inputs, options.hidden, 10, options.layers).to(device)
    if options.optimizer == "sgd":
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)
    else:
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    precision = contextlib.nullcontext()
    if options.precision == "bf16":
        precision = torch.autocast("cuda", dtype=torch.bfloat16)

    for step in range(options.steps):
        images = torch.randn(options.batch, options.inputs).to(device)
        labels = torch.randint(0, 10, (options.batch,)).to(device)
        with precision:
            loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
