"""Measures the cards through PyTorch, for `vramtrace doctor`. Prints a JSON object a line, each as soon as it
is known, so that what was measured before a time limit is kept. Arguments: seconds that it may take."""

from __future__ import annotations

import json
import sys
import time

BEGAN = time.monotonic()
SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 45.0


def say(what, **fields) -> None:
    print(json.dumps({"what": what, **fields}), flush=True)


def left() -> float:
    return SECONDS - (time.monotonic() - BEGAN)


def measure(torch, index, kind, function) -> None:
    """One rate of one card; a failure is a reason, never the end."""
    if left() <= 0:
        say("not", index=index, kind=kind, why="the time was over: --seconds")
        return
    say("progress", text=f"card {index}: {kind}")
    try:
        value = function()
    except Exception as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        say("not", index=index, kind=kind, why=reason)
        return
    finally:
        torch.cuda.empty_cache()
    if isinstance(value, str):
        say("not", index=index, kind=kind, why=value)
    else:
        say("rate", index=index, kind=kind, value=value)


def seconds_of(torch, work, share=1.0) -> float:
    """Seconds of one call on the current card: the best of a few rounds, by events."""
    work()
    torch.cuda.synchronize()
    best = None
    until = time.monotonic() + min(share, max(left(), 0.05))
    for _ in range(20):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(3):
            work()
        end.record()
        torch.cuda.synchronize()
        took = begin.elapsed_time(end) / 3000
        best = took if best is None else min(best, took)
        if time.monotonic() > until:
            break
    return best


def matrix_rate(torch, dtype, tf32) -> float:
    torch.backends.cuda.matmul.allow_tf32 = tf32
    size = 8192 if torch.cuda.mem_get_info()[0] > 4 << 30 else 4096
    a = torch.randn(size, size, device="cuda", dtype=dtype)
    b = torch.randn(size, size, device="cuda", dtype=dtype)
    out = torch.empty(size, size, device="cuda", dtype=dtype)
    took = seconds_of(torch, lambda: torch.mm(a, b, out=out), 2.0)
    torch.backends.cuda.matmul.allow_tf32 = False
    return 2.0 * size**3 / took


def copy_bytes(torch) -> int:
    return min(1 << 30, torch.cuda.mem_get_info()[0] // 8)


def bandwidth(torch) -> float:
    count = copy_bytes(torch)
    a = torch.empty(count, dtype=torch.uint8, device="cuda")
    b = torch.empty_like(a)
    return 2.0 * count / seconds_of(torch, lambda: b.copy_(a))


def host_copy(torch, to_device) -> float:
    count = 256 << 20
    host = torch.empty(count, dtype=torch.uint8, pin_memory=True)
    card = torch.empty(count, dtype=torch.uint8, device="cuda")
    target, source = (card, host) if to_device else (host, card)
    return count / seconds_of(torch, lambda: target.copy_(source, non_blocking=True))


def resnet(torch) -> float | str:
    try:
        import torchvision
    except ImportError:
        return "torchvision is not installed"
    model = torchvision.models.resnet50().cuda().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    images = torch.randn(64, 3, 224, 224, device="cuda").to(memory_format=torch.channels_last)
    labels = torch.randint(0, 1000, (64,), device="cuda")

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()

    return 64 / seconds_of(torch, step, 4.0)


def card_rates(torch, index, simulated) -> None:
    with torch.cuda.device(index):
        half = torch.bfloat16 if torch.cuda.get_device_capability()[0] >= 8 else torch.float16
        measure(torch, index, "fp32", lambda: matrix_rate(torch, torch.float32, False))
        measure(torch, index, "tf32", lambda: matrix_rate(torch, torch.float32, True))
        measure(torch, index, "bf16", lambda: matrix_rate(torch, half, False))
        measure(torch, index, "bandwidth", lambda: bandwidth(torch))
        measure(torch, index, "host_to_device", lambda: host_copy(torch, True))
        measure(torch, index, "device_to_host", lambda: host_copy(torch, False))
        if not simulated:
            measure(torch, index, "resnet50", lambda: resnet(torch))


def peer(torch) -> float:
    count = 256 << 20
    a = torch.empty(count, dtype=torch.uint8, device="cuda:0")
    b = torch.empty(count, dtype=torch.uint8, device="cuda:1")
    return count / seconds_of(torch, lambda: b.copy_(a))


def wall(torch, count, work) -> float:
    """Seconds of one call, all cards together, by the wall."""
    best = None
    for _ in range(6):
        for index in range(count):
            torch.cuda.synchronize(index)
        begin = time.perf_counter()
        for _ in range(3):
            work()
        for index in range(count):
            torch.cuda.synchronize(index)
        took = (time.perf_counter() - begin) / 3
        best = took if best is None else min(best, took)
    return best


def all_reduce(torch, count) -> float:
    from torch.cuda import nccl

    size = 256 << 20
    tensors = [torch.zeros(size // 4, device=f"cuda:{i}") for i in range(count)]
    took = wall(torch, count, lambda: nccl.all_reduce(tensors))
    return 2.0 * (count - 1) / count * size / took


def scaling(torch, count) -> float:
    """Work as a training step has it: products, and the gradients of a ResNet-50 (25.6 million) over all."""
    from torch.cuda import nccl

    size = 4096
    factors = [torch.randn(size, size, device=f"cuda:{i}", dtype=torch.float16) for i in range(count)]
    gradients = [torch.zeros(25_600_000, device=f"cuda:{i}") for i in range(count)]

    def work(cards) -> None:
        for index in range(cards):
            for _ in range(40):
                torch.mm(factors[index], factors[index])
        if cards > 1:
            nccl.all_reduce(gradients)

    one = wall(torch, 1, lambda: work(1))
    return count * one / wall(torch, count, lambda: work(count))


def main() -> None:
    simulated = "--simulated" in sys.argv
    say("progress", text="import of torch")
    try:
        import torch
    except ImportError as error:
        say("missing", why=f"PyTorch is not installed for this Python: {error}")
        return
    say(
        "runtime",
        by="torch",
        torch=torch.__version__,
        cuda=torch.version.cuda or "",
        architectures=torch.cuda.get_arch_list() if torch.cuda.is_available() else [],
    )
    if not torch.cuda.is_available():
        say("missing", why="PyTorch sees no card")
        return
    count = torch.cuda.device_count()
    for index in range(count):
        card = torch.cuda.get_device_properties(index)
        free, total = torch.cuda.mem_get_info(index)
        say(
            "card",
            index=index,
            name=card.name,
            uuid=str(getattr(card, "uuid", "")),
            total=total,
            free=free,
            multiprocessors=card.multi_processor_count,
            major=card.major,
            minor=card.minor,
        )
    for index in range(count):
        card_rates(torch, index, simulated)
    if count > 1 and not simulated:
        measure(torch, 0, "peer", lambda: peer(torch))
        measure(torch, 0, "all_reduce", lambda: all_reduce(torch, count))
        measure(torch, 0, "scaling", lambda: scaling(torch, count))


main()
