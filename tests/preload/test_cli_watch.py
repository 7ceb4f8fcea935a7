"""`vramtrace watch`: a slow run on a simulated card, a process that runs already, what cannot be watched."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cli_runs import ALLOCATE, Command

SLOW_LOADER = """
import time, torch
from torch.utils.data import DataLoader, Dataset

class Slow(Dataset):
    def __len__(self): return 64
    def __getitem__(self, i):
        time.sleep(0.02)
        return torch.randn(1024)

model = torch.nn.Linear(1024, 1024).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for epoch in range(1):
    for batch in DataLoader(Slow(), batch_size=4):
        loss = model(batch.cuda()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


@pytest.fixture
def vramtrace(build, tmp_path: Path) -> Command:
    return Command(build.folder, tmp_path)


def test_a_slow_loader_is_found(vramtrace: Command) -> None:
    scenario = vramtrace.folder / "scenario.txt"
    scenario.write_text("utilization = 15\nmemory_utilization = 4\ntemperature = 55\n")
    ended = vramtrace(
        *("watch", "--gpu", "rtx4090", "--scenario", scenario, "--interval", "0.1", "--format", "json"),
        *("--price", "3.6", "--currency", "CNY", "--epochs", "2"),
        *("--on-exit", "echo $VRAMTRACE_EXIT_CODE > stopped"),
        *("-o", vramtrace.folder / "t.vtrace", "--", *vramtrace.script(SLOW_LOADER)),
    )
    assert ended.status == 0, ended.errors
    summary = json.loads(ended.output.splitlines()[-1])
    rows = {row["key"]: row for row in summary["symptoms"]}
    assert rows["data_loader"]["state"] == "found", rows
    assert rows["data_loader"]["confidence"] == "high"
    assert rows["few_workers"]["state"] == "found"
    assert "num_workers is 0" in rows["few_workers"]["sentence"]
    assert rows["throttled"]["state"] == "absent"
    assert rows["small_batch"]["state"] == "unknown"
    assert summary["steps"]["completed"] == 16
    assert 0.06 < summary["steps"]["data_s"] < 0.5
    assert summary["cost"]["so_far"] > 0
    assert summary["left_s"] > 0.5, "the second epoch is not run"
    assert (vramtrace.folder / "stopped").read_text() == "0\n"
    lines = ended.own_lines()
    live = [line for line in lines if "GPU 0" in line and "15 % busy, memory busy 4 %" in line]
    assert live, ended.errors
    assert any("weights 4.0 MiB" in line for line in live), live[-1]
    assert "3.60 CNY an hour" in lines[-1]


def test_a_process_that_runs_already(vramtrace: Command) -> None:
    sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        watcher = subprocess.Popen(
            [vramtrace.program, "watch", "--pid", str(sleeper.pid), "--interval", "0.2", "--gpu", "rtx4090"],
            env=vramtrace.environment(),
            cwd=vramtrace.folder,
            stderr=subprocess.PIPE,
            text=True,
        )
        time.sleep(1.5)
        assert watcher.poll() is None
    finally:
        sleeper.terminate()
        sleeper.wait()
    _, errors = watcher.communicate(timeout=30)
    assert watcher.returncode == 0
    assert "not recorded" in errors
    assert "GPU 0 0 B of 23.64 GiB (0 %), 0 % busy" in errors
    assert "a recorded run: start it with" in errors
    assert errors.splitlines()[-1].endswith("bills until it is stopped")


def test_the_status_is_the_programs_and_no_driver_is_no_failure(vramtrace: Command) -> None:
    ended = vramtrace("watch", "--", "sh", "-c", "exit 7")
    assert ended.status == 7
    if not Path("/proc/driver/nvidia").exists():
        assert "no NVIDIA driver" in ended.errors
    assert vramtrace("watch", "--", "no-such-command").status == 127
    assert vramtrace("watch").status == 2
    assert vramtrace("watch", "--pid", "999999999").status == 2
    assert vramtrace("watch", "--gpu", "rtx4900", "--", "true").status == 2
    missing = vramtrace("watch", "--gpu", "rtx4090", "--scenario", "/no/such", "--", "true")
    assert missing.status == 3
    assert "/no/such" in missing.errors


def test_a_program_that_never_steps(vramtrace: Command) -> None:
    ended = vramtrace("watch", "--gpu", "rtx4090", "--explain", "--", *vramtrace.script(ALLOCATE), "100")
    assert ended.status == 0
    assert "nothing that these rules know" in ended.errors
    assert "the batch is too small: cannot know" in ended.errors
    assert os.listdir(vramtrace.folder)
