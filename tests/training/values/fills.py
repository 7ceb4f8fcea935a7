"""Fills, ranges, flags and counts without the interpreter's help: what the runtime knows by itself."""

import torch

DEVICE = "cuda"


def main() -> None:
    assert torch.ones(100_000, device=DEVICE)[99_990:].tolist() == [1.0] * 10
    assert torch.zeros(3, device=DEVICE).tolist() == [0.0] * 3
    assert torch.full((3,), 2.5, device=DEVICE, dtype=torch.bfloat16).tolist() == [2.5] * 3
    assert torch.full((2,), -7, device=DEVICE).tolist() == [-7, -7]
    assert torch.ones(5, dtype=torch.bool, device=DEVICE).tolist() == [True] * 5
    for dtype in (torch.int64, torch.int32, torch.float32, torch.float64):
        assert torch.arange(10, 2, -3, device=DEVICE, dtype=dtype).tolist() == [10, 7, 4]
    assert torch.isfinite(torch.empty(10, device=DEVICE)).all().item() is True
    assert torch.isnan(torch.empty(10, device=DEVICE)).any().item() is False
    assert torch.ones(2_000_000, dtype=torch.bool, device=DEVICE).nonzero().shape == (2_000_000, 1)
    assert torch.tensor([1.0, 0.0, 2.0], device=DEVICE).nonzero().shape == (2, 1)
    assert torch.empty(2_000_000, dtype=torch.bool, device=DEVICE).nonzero().shape == (1_000_000, 1)
    scaler = torch.amp.GradScaler("cuda")
    scaler.scale(torch.ones(1, device=DEVICE))
    assert scaler.get_scale() == 65536
    print("fills are true")


if __name__ == "__main__":
    main()
