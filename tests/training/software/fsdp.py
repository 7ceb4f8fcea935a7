"""Fully sharded data parallel, the first and the second interface, under torchrun."""

import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard


def model() -> nn.Sequential:
    return nn.Sequential(
        *(nn.TransformerEncoderLayer(256, 4, 512, dropout=0.0, batch_first=True) for _ in range(2))
    )


def main(interface: str) -> None:
    rank, world = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    if "MASTER_ADDR" not in os.environ:
        os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "localhost", "29513"
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", rank=rank, world_size=world, device_id=device)
    torch.manual_seed(0)
    if interface == "1":
        net = FullyShardedDataParallel(model().to(device), device_id=device)
    else:
        net = model().to(device)
        for layer in net:
            fully_shard(layer)
        fully_shard(net)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)
    for _ in range(3):
        loss = net(torch.randn(4, 64, 256, device=device)).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print(f"rank {rank} of {world}: loss {loss.item():.4f} peak {torch.cuda.max_memory_allocated()}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "2")
