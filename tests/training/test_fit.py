"""`vramtrace fit` with real PyTorch: the forecast from two recordings meets the proof."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from matrix import MODELS
from recording import FOLDER, Build

MIB = 1 << 20


def fit(build: Build, folder: Path, total: str, *program: str | Path) -> tuple[int, dict]:
    command = [build.vramtrace, "fit", "--gpu", "rtx4090", "--total", total, "--format", "json", "--"]
    done = subprocess.run(
        [*command, sys.executable, *map(str, program)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def test_gpt2(build: Build, tmp_path: Path) -> None:
    options = MODELS["gpt2"][1].replace("--batch 4", "--batch {batch}").split()
    assert "{batch}" in options
    status, report = fit(build, tmp_path, "1600MiB", FOLDER / "gpt2.py", *options)
    assert status == 0, report
    [card] = report["cards"]
    assert card["kind"] == "proved"
    # Four runs: the forecast was right about the edge.
    assert [run["end"] for run in report["runs"]] == ["completed"] * 3 + ["out of memory"]
    assert card["largest"]["value"] == card["forecast_largest"]
    assert card["above"]["value"] == card["largest"]["value"] + 1
    run, forecast = card["largest"]["run"], card["largest"]["forecast"]
    assert abs(forecast["allocated"] / run["peak_allocated"] - 1) < 0.0005
    assert run["peak_used"] <= 1600 * MIB < card["above"]["forecast"]["used"] + 200 * MIB
    # The edge is by definition too near for a real card.
    assert forecast["verdict"] != "fits"
    assert card["safe"] < card["largest"]["value"]


def test_a_script_that_wants_multiples(build: Build, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import sys, torch\nbatch = int(sys.argv[1])\n"
        "if batch % 8:\n    raise ValueError(f'batch {batch} is not a multiple of 8')\n"
        "model = torch.nn.Linear(1024, 1024).cuda()\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "for _ in range(3):\n"
        "    model(torch.ones(batch, 8192, 1024, device='cuda')).sum().backward()\n"
        "    optimizer.step()\n    optimizer.zero_grad()\n"
    )
    status, report = fit(build, tmp_path, "4GiB", script, "{batch}")
    assert status == 0, report
    [card] = report["cards"]
    assert report["step"] == 8
    assert card["kind"] == "proved"
    assert card["largest"]["value"] % 8 == 0
    assert card["above"]["value"] == card["largest"]["value"] + 8
