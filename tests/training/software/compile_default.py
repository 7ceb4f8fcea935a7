"""torch.compile with Inductor and Triton: a small transformer layer, with and without CUDA graphs."""

import sys

import torch
from torch import nn


def main(mode: str) -> None:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(128, 4, 256, dropout=0.0, batch_first=True).to("cuda")
    model = torch.compile(layer, mode=None if mode == "default" else mode)
    optimizer = torch.optim.AdamW(layer.parameters(), lr=1e-3)
    for step in range(4):
        loss = model(torch.randn(8, 64, 128, device="cuda")).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"step {step} loss {loss.item():.4f}")
    print("graphs", torch._dynamo.utils.counters["stats"]["unique_graphs"])


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "default")
