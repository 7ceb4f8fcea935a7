"""The programs whose batch is forecast."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path

from matrix import OPTIMIZERS, PRECISIONS

FOLDER = Path(__file__).resolve().parent
TRAINING = FOLDER.parents[1] / "training"


@dataclass(frozen=True)
class Case:
    name: str
    script: Path
    arguments: tuple[str, ...]
    recorded: tuple[int, int]  # batches of the two recordings
    targets: tuple[int, ...]  # five others
    takes_one: bool = True  # False: batch normalisation of single rows refuses a batch of 1

    def __str__(self) -> str:
        return self.name


def around(batch: int) -> tuple[int, ...]:
    """Below, between and above `batch` and twice that."""
    return (batch // 4, batch // 2, batch * 3 // 2, batch * 4, batch * 8)


MODELS = {
    "mlp": ("mlp.py", "--steps 3", 64),
    "gpt2": ("gpt2.py", "--steps 3", 4),
    "resnet50": ("vision.py", "--steps 3 --model resnet50", 8),
    "vit": ("vision.py", "--steps 3 --model vit_b_16", 8),
}
TRANSFORMERS = ("gpt2-xl", "qwen2.5-1.5b", "llama-3.2-3b", "mistral-7b", "qwen3-4b")


def scripts() -> list[Case]:
    found = []
    for (name, (script, options, batch)), optimizer, precision in itertools.product(
        MODELS.items(), OPTIMIZERS, PRECISIONS
    ):
        arguments = (*options.split(), "--optimizer", optimizer, "--precision", precision)
        found.append(
            Case(
                f"{name}-{optimizer}-{precision}",
                TRAINING / script,
                arguments,
                (batch, 2 * batch),
                around(batch),
                takes_one=name != "mlp",
            )
        )
    return found


def transformers() -> list[Case]:
    found = []
    for model, checkpointing in itertools.product(TRANSFORMERS, (False, True)):
        arguments = ("--model", model, *(["--checkpointing"] if checkpointing else []))
        name = f"{model}{'-checkpointing' if checkpointing else ''}"
        found.append(Case(name, FOLDER / "transformer.py", arguments, (2, 4), (1, 3, 8, 16, 32)))
    return found


def cases() -> list[Case]:
    return [*scripts(), *transformers()]
