"""A compiled model; how often it was compiled and captured, and its peaks."""

import json
import sys

import torch
from torch import nn
from torch._dynamo.utils import counters


def main(backend: str) -> None:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(64, 2, 128, dropout=0.0, batch_first=True).to("cuda")
    model = torch.compile(layer, backend=backend)
    for length in (16, 16, 24):
        model(torch.randn(4, length, 64, device="cuda")).sum().backward()
    told = {
        "graphs": counters["stats"]["unique_graphs"],
        "breaks": sum(counters["graph_break"].values()),
        "allocated": torch.cuda.max_memory_allocated(),
        "reserved": torch.cuda.max_memory_reserved(),
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main(sys.argv[1])
