"""Trains with DistributedDataParallel in a process group of one rank."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    torch.cuda.set_device(0)
    store = dist.HashStore()
    dist.init_process_group("nccl", store=store, rank=0, world_size=1)
    torch.manual_seed(0)
    net = nn.Sequential(
        *(nn.TransformerEncoderLayer(512, 8, 2048, dropout=0.0, batch_first=True) for _ in range(4)),
        nn.Linear(512, 1000),
    )
    model = DistributedDataParallel(net.cuda(), device_ids=[0])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for step in range(4):
        x = torch.randn(16, 64, 512, device="cuda")
        y = torch.randint(0, 1000, (16, 64), device="cuda")
        loss = nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"step {step} loss {loss.item():.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
