"""What stands for values that nobody knows.

Losses and norms: finite, positive and slowly falling, so that early stopping, schedulers and checks for NaN
go on as in a healthy run. Counts: a ratio of the most that could be (VRAMTRACE_SIM_COUNTS). Choices of
experts: balanced. Flags: all is well."""

import os

import torch

DEFAULT_RATIO = 0.5


class Policy:
    def __init__(self):
        self.reads = 0  # by the host
        self.made = 0  # single values
        self.ratio = _ratio(os.environ.get("VRAMTRACE_SIM_COUNTS", ""))

    def falling(self):
        """Falls with every value that the host reads, and a little with every one that is made: a loss may be
        compared on the device."""
        self.made += 1
        return 3.0 / (1.0 + self.reads / 50.0 + self.made / 5000.0)

    def finite(self, value):
        """Values computed from nothing must not look like a failed run. What is masked out stays so."""
        if value.is_floating_point():
            value.nan_to_num_(nan=0.0, posinf=0.0, neginf=float("-inf"))
            if value.numel() == 1 and not value.isfinite():
                value.fill_(self.falling())
        return value

    def count(self, most):
        return int(most * self.ratio)


def _ratio(text):
    if text == "largest":
        return 1.0
    try:
        return min(1.0, max(0.0, float(text))) if text else DEFAULT_RATIO
    except ValueError:
        return DEFAULT_RATIO


def balanced(values, indices, dim):
    """Indices of topk over values that are all equal: each row takes the next ones, so that every expert has
    its share."""
    if indices.dim() == 0 or values.numel() == 0:
        return
    rows = indices.movedim(dim, -1)
    width = values.size(dim)
    chosen = torch.arange(rows.numel(), device="cpu").remainder(width)
    rows.copy_(chosen.view(rows.shape))
