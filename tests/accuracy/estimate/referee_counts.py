"""Counts the parameters of every model of models.py with transformers' own classes, on the meta device.

Writes the table that tests/unit/estimate_families_test.cpp compares with.

    python -m tests.accuracy.estimate.referee_counts > tests/unit/estimate_referee.def

A count that differs from what the publisher says is an error: then the configuration here is not the model's.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import torch
import transformers
from transformers import AutoConfig

from tests.accuracy.estimate.models import MODELS, PublishedModel


def count(model: PublishedModel) -> int:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.json").write_text(json.dumps(model.as_json()))
        config = AutoConfig.from_pretrained(folder)
    with torch.device("meta"):
        built = getattr(transformers, model.architecture)._from_config(config)
    return sum(parameter.numel() for parameter in built.parameters())


def main() -> int:
    print("// Parameter counts by transformers " + transformers.__version__ + ", on the meta device; made by")
    print("// tests/accuracy/estimate/referee_counts.py.  VRAMTRACE_REFEREE(model, count, config.json)")
    wrong = 0
    for model in MODELS:
        counted = count(model)
        if model.parameters and counted != model.parameters:
            print(f"{model.name}: counted {counted}, published {model.parameters}", file=sys.stderr)
            wrong += 1
        text = json.dumps(model.as_json(), separators=(",", ":"))
        print(f'VRAMTRACE_REFEREE("{model.name}", {counted}, R"({text})")')
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
