"""The runs whose report is compared with PyTorch's own counters."""

from __future__ import annotations

import itertools
from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    name: str
    script: str
    arguments: tuple[str, ...]

    def __str__(self) -> str:
        return self.name


# Small: importing PyTorch is most of a run. Three steps: the optimizer's state appears in the
# first, the second is the first whole one, the third shows that nothing grows.
MODELS = {
    "mlp": ("mlp.py", "--steps 3 --hidden 1024"),
    "gpt2": (
        "gpt2.py",
        "--steps 3 --layers 2 --width 256 --heads 4 --vocabulary 8192 --batch 4 --sequence 128",
    ),
    "resnet50": ("vision.py", "--steps 3 --model resnet50 --batch 4 --size 96"),
    "vit": ("vision.py", "--steps 3 --model vit_b_16 --batch 4 --size 64"),
}
# The full matrix, run by script/accuracy: the sizes that people train.
FULL_MODELS = {
    "mlp": ("mlp.py", "--steps 3"),
    "gpt2": ("gpt2.py", "--steps 3"),
    "resnet50": ("vision.py", "--steps 3 --model resnet50"),
    "vit": ("vision.py", "--steps 3 --model vit_b_16"),
}
OPTIMIZERS = ("sgd", "adamw")
PRECISIONS = ("fp32", "bf16")


def cases(models: dict[str, tuple[str, str]]) -> list[Case]:
    found = []
    for (name, (script, options)), optimizer, precision in itertools.product(
        models.items(), OPTIMIZERS, PRECISIONS
    ):
        arguments = (*options.split(), "--optimizer", optimizer, "--precision", precision)
        found.append(Case(f"{name}-{optimizer}-{precision}", script, arguments))
    return found


OUT_OF_MEMORY = Case("out-of-memory", "out_of_memory.py", ())
