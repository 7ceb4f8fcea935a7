"""Distributed data parallel under torchrun, with what ranks tell each other checked."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    rank, world = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    if world == 1:
        os.environ.setdefault("MASTER_ADDR", "localhost")
        os.environ.setdefault("MASTER_PORT", "29511")
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", rank=rank, world_size=world, device_id=device)
    torch.manual_seed(rank)

    total = torch.tensor([float(rank + 1)], device=device)
    dist.all_reduce(total)
    assert total.item() == world * (world + 1) / 2, total
    told: list = [None] * world
    dist.all_gather_object(told, {"rank": rank, "text": "x" * rank})
    assert [entry["rank"] for entry in told] == list(range(world)), told
    objects = [f"from {rank}"]
    dist.broadcast_object_list(objects, src=world - 1)
    assert objects == [f"from {world - 1}"], objects
    if world > 1:
        message = torch.full((4,), float(rank), device=device)
        received = torch.empty_like(message)
        requests = dist.batch_isend_irecv(
            [
                dist.P2POp(dist.isend, message, (rank + 1) % world),
                dist.P2POp(dist.irecv, received, (rank - 1) % world),
            ]
        )
        for request in requests:
            request.wait()
        assert received.tolist() == [float((rank - 1) % world)] * 4, received

    model = DistributedDataParallel(
        nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 10)).to(device), device_ids=[device]
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(3):
        loss = nn.functional.cross_entropy(
            model(torch.randn(32, 256, device=device)), torch.randint(0, 10, (32,), device=device)
        )
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    # What starts equal and is averaged stays equal.
    bias = model.module[2].bias.detach()
    parts = [torch.empty_like(bias) for _ in range(world)]
    dist.all_gather(parts, bias)
    assert all(part.equal(parts[0]) for part in parts), parts
    dist.barrier()
    print(f"rank {rank} of {world}: loss {loss.item():.4f}, sum {total.item():.0f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
