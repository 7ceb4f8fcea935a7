"""The cases: a CSV file of published measurements, a row each, columns as in `cases.csv`."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

OWN = Path(__file__).with_name("cases.csv")
COLUMNS = (
    "id", "source_url", "gpu", "torch", "model", "model_config", "task", "batch", "seq_or_resolution",
    "precision", "optimizer", "technique", "what_measured", "bytes", "notes", "peer_estimates", "kind",
)  # fmt: skip


class BadCase(RuntimeError):
    """A row that cannot be read; the text names file, line and column."""


@dataclass(frozen=True)
class Case:
    name: str
    kind: str
    gpu: str
    torch: str  # a version, empty when the source does not say
    transformers: str
    total_bytes: int  # of the card, as the source saw it; 0 when it does not say
    model: str
    shape: dict[str, Any]
    task: str
    batch: int
    length: int  # tokens a row, or pixels a side
    precision: str
    optimizer: str
    technique: dict[str, Any]
    measured: str
    truth: int
    peer_error: float | None  # percent, of the best peer that has one, signed where it is published so
    source: str

    def __str__(self) -> str:
        return self.name

    @property
    def is_verdict(self) -> bool:
        return "OOM verdict" in self.measured

    @property
    def counter(self) -> str:
        """Which counter of PyTorch is comparable: a device's growth is what PyTorch reserved (README.md)."""
        return "allocated" if "allocated" in self.measured else "reserved"


def number(text: str, default: int = 0) -> int:
    found = re.search(r"\d+", text)
    return int(found.group()) if found else default


def version(text: str) -> str:
    found = re.match(r"\d+\.\d+(\.\d+)?", text.strip())
    return found.group() if found else ""


def after(label: str, text: str) -> str:
    found = re.search(rf"{label} ([\d.]*\d)", text)
    return found.group(1) if found else ""


def length_of(text: str) -> int:
    """ "9+2 tokens" is the prompt and what is generated."""
    return number(text)


def peer_error(text: str) -> float | None:
    peers = json.loads(text or "{}")
    errors = peers.get("err_pct", {})
    if isinstance(errors, dict):
        return errors.get("xMem", peers.get("FakeGPU_static_err_pct_abs"))
    return errors


def read_row(row: dict[str, str]) -> Case:
    return Case(
        name=row["id"],
        kind=row["kind"],
        gpu=row["gpu"],
        torch=version(row["torch"]),
        transformers=after("transformers", row["notes"]),
        total_bytes=number(after("GPU total", row["notes"])),
        model=row["model"],
        shape=json.loads(row["model_config"]),
        task=row["task"],
        batch=number(row["batch"], 1),
        length=length_of(row["seq_or_resolution"]),
        precision=row["precision"],
        optimizer=row["optimizer"],
        technique=json.loads(row["technique"] or "{}"),
        measured=row["what_measured"],
        truth=int(row["bytes"]),
        peer_error=peer_error(row["peer_estimates"]),
        source=row["source_url"],
    )


def read(path: Path) -> list[Case]:
    with path.open(newline="") as file:
        reader = csv.DictReader(file)
        lacking = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
        if lacking:
            raise BadCase(f"{path}:1: no column {', '.join(lacking)}")
        cases = []
        for row in reader:
            try:
                cases.append(read_row(row))
            except (ValueError, TypeError) as error:
                raise BadCase(f"{path}:{reader.line_num}: {row['id']}: {error}") from error
    return cases
