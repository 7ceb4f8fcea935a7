"""`vramtrace dry-run`: a verdict from the simulated device, and nothing of the user's is changed."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cli_runs import ALLOCATE, Command, Ended

MIB = 1 << 20


@pytest.fixture
def vramtrace(build, tmp_path: Path) -> Command:
    folder = tmp_path / "my work"
    folder.mkdir()
    (folder / "model.pt").write_text("weights")
    return Command(build.folder, folder)


def verdict(done: Ended) -> str:
    return "\n".join(done.own_lines())


def test_the_verdict_names_the_device_and_the_trace(vramtrace: Command) -> None:
    done = vramtrace("dry-run", "--gpu", "RTX 4090", "--", *vramtrace.script(ALLOCATE), "1024")
    assert done.status == 0, done.errors
    assert "cudaMalloc answered 0" in done.output
    said = verdict(done)
    assert "a simulated NVIDIA GeForce RTX 4090 with 23.64 GiB (measured)" in said
    # 1 GiB and the catalogue's context of 426 MiB.
    assert "peak device used 1.42 GiB of 23.64 GiB (measured), 426.0 MiB of it the context" in said
    assert "it fits at this batch: 22.22 GiB stay free" in said
    [trace] = done.traces()
    assert f"next: vramtrace analyze {trace.name}" in said
    assert not re.search(r"\d s\b|took|seconds", said.split("stops after")[1].split("\n", 1)[1])


def test_unknown_gpu(vramtrace: Command) -> None:
    done = vramtrace("dry-run", "--gpu", "rtx4900", "--", "touch", "made")
    assert done.status == 2
    assert "rtx4090" in done.errors
    assert not (vramtrace.folder / "made").exists()


def test_json_is_the_last_line_of_the_output(vramtrace: Command) -> None:
    program = vramtrace.script(ALLOCATE)
    done = vramtrace("dry-run", "--gpu", "l4", "--budget", "1GiB", "--format", "json", "--", *program, "1024")
    *own, line = done.output.splitlines()
    assert "cudaMalloc answered 0" in own
    summary = json.loads(line)
    [trace] = done.traces()
    assert summary["traces"] == [{"path": str(trace), "bytes": trace.stat().st_size}]
    assert (summary["exit_code"], summary["program_exit_code"], summary["verdict"]) == (1, 0, "fits")
    [device] = summary["devices"]
    assert device["peak_used_bytes"] == device["context_bytes"] + 1024 * 1024**2
    assert summary["over_budget"]


def test_budget(vramtrace: Command) -> None:
    program = vramtrace.script(ALLOCATE)
    within = vramtrace("dry-run", "--gpu", "l4", "--budget", "2GiB", "--", *program, "1024")
    assert within.status == 0
    assert "within budget" in verdict(within)
    over = vramtrace("dry-run", "--gpu", "l4", "--budget", "1GiB", "--", *program, "1024")
    assert over.status == 1
    assert re.search(r"over budget: 1\.\d\d GiB .* 426\.0 MiB more than 1\.00 GiB", verdict(over))
    failing = vramtrace.script(ALLOCATE + "raise SystemExit(5)\n", "failing.py")
    assert vramtrace("dry-run", "--gpu", "l4", "--budget", "1GiB", "--", *failing, "1024").status == 5


def test_out_of_memory_is_a_verdict(vramtrace: Command) -> None:
    program = vramtrace.script(ALLOCATE + "raise SystemExit(3 if result == 2 else 0)\n")
    done = vramtrace("dry-run", "--gpu", "t4", "--", *program, str(15 * 1024))
    assert done.status == 3
    assert "it does not fit: 1 allocation was refused, the largest of 15.00 GiB" in verdict(done)
    fits = vramtrace("dry-run", "--gpu", "t4", "--total", "16GiB", "--", *program, str(15 * 1024))
    assert fits.status == 0
    assert "16.00 GiB (given with --total)" in verdict(fits)


def test_a_killed_program_still_has_figures(vramtrace: Command) -> None:
    program = vramtrace.script(ALLOCATE + "import os\nos.kill(os.getpid(), 9)\n")
    done = vramtrace("dry-run", "--gpu", "l4", "--", *program, "512")
    assert done.status == 128 + signal.SIGKILL
    assert "peak device used 938.0 MiB" in verdict(done)
    assert "no verdict: the program ended with status 137" in verdict(done)
    assert len(done.traces()) == 1


CHANGE_FILES = """
import os, sys
open("model.pt", "w").write("new")
assert open("model.pt").read() == "new"
open("checkpoint.pt", "w").write("1")
os.rename("checkpoint.pt", "last.pt")
"""


def test_what_the_program_writes_is_dropped_or_kept(vramtrace: Command) -> None:
    program = vramtrace.script(CHANGE_FILES + ALLOCATE)
    done = vramtrace("dry-run", "--gpu", "l4", "--", *program, "1")
    if "scratch layer that is dropped" not in verdict(done):
        pytest.skip("no scratch layer can be mounted here")
    assert done.status == 0, done.errors
    assert (vramtrace.folder / "model.pt").read_text() == "weights"
    assert {p.name for p in vramtrace.folder.iterdir()} == {"model.pt", "program.py", done.traces()[0].name}
    assert "wrote 2 files" in verdict(done)

    kept = vramtrace("dry-run", "--gpu", "l4", "--keep", "--", *program, "1")
    found = re.search(r"kept below (\S+)", verdict(kept))
    assert found is not None
    assert (Path(found[1]) / "layer0" / "written" / "last.pt").read_text() == "1"
    shutil.rmtree(found[1])


def test_without_a_layer_the_first_overwrite_stops_the_run(vramtrace: Command) -> None:
    program = vramtrace.script(CHANGE_FILES + ALLOCATE)
    done = vramtrace("dry-run", "--gpu", "l4", "--no-scratch", "--", *program, "1")
    assert done.status == 1
    assert "Traceback" not in done.errors, "it is ended before it hears of a refusal"
    assert f"about to open {vramtrace.folder / 'model.pt'} for writing" in verdict(done)
    assert "--in-place" in verdict(done)
    assert (vramtrace.folder / "model.pt").read_text() == "weights"
    assert not (vramtrace.folder / "checkpoint.pt").exists()

    new_only = vramtrace.script("open('new.txt', 'w').write('1')\n" + ALLOCATE, "new_only.py")
    allowed = vramtrace("dry-run", "--gpu", "l4", "--no-scratch", "--", *new_only, "1")
    assert allowed.status == 0, allowed.errors
    assert (vramtrace.folder / "new.txt").read_text() == "1"

    in_place = vramtrace("dry-run", "--gpu", "l4", "--in-place", "--", *program, "1")
    assert in_place.status == 0
    assert (vramtrace.folder / "model.pt").read_text() == "new"


def test_another_folder_can_be_protected(vramtrace: Command, tmp_path: Path) -> None:
    other = tmp_path / "checkpoints"
    other.mkdir()
    (other / "best.pt").write_text("best")
    program = vramtrace.script(f"open({str(other / 'best.pt')!r}, 'w').write('worse')\n")
    for options in ([], ["--no-scratch"]):
        vramtrace("dry-run", "--gpu", "l4", "--protect", other, *options, "--", *program)
        assert (other / "best.pt").read_text() == "best"
    vramtrace("dry-run", "--gpu", "l4", "--", *program)
    assert (other / "best.pt").read_text() == "worse", "only what was asked for is protected"


def test_the_trace_goes_where_the_user_wants_it(vramtrace: Command, tmp_path: Path) -> None:
    program = vramtrace.script(ALLOCATE)
    for output, expected in (
        ("runs/a.vtrace", vramtrace.folder / "runs" / "a.vtrace"),
        (tmp_path / "b.vtrace", tmp_path / "b.vtrace"),
    ):
        done = vramtrace("dry-run", "--gpu", "l4", "-o", output, "--", *program, "1")
        assert done.status == 0, done.errors
        assert expected.is_file()


def test_the_program_can_tell_and_trackers_are_offline(vramtrace: Command) -> None:
    names = (
        "VRAMTRACE_DRY_RUN",
        "WANDB_MODE",
        "CLEARML_OFFLINE_MODE",
        "CUDA_VISIBLE_DEVICES",
        "HF_HUB_OFFLINE",
    )
    program = vramtrace.script(f"import os\nprint([os.environ.get(n) for n in {names!r}])")
    done = vramtrace("dry-run", "--gpu", "l4", "--", *program, CUDA_VISIBLE_DEVICES="", WANDB_MODE="online")
    assert done.output == "['1', 'offline', '1', None, None]\n"
    assert "CUDA_VISIBLE_DEVICES is not passed on" in verdict(done)
    offline = vramtrace("dry-run", "--gpu", "l4", "--offline", "--", *program, WANDB_MODE="disabled")
    assert offline.output == "['1', 'disabled', '1', None, '1']\n"


def test_time_out(vramtrace: Command) -> None:
    seconds = 2
    program = vramtrace.script(ALLOCATE + "import time\ntime.sleep(200)\n")
    command = ("dry-run", "--gpu", "l4", "--timeout", f"{seconds}s", "--", *program, "64")
    done = vramtrace(*command)
    while "answered 0" not in done.output and seconds < 60:  # too busy a machine to get so far in time
        seconds *= 4
        done = vramtrace(*command[:4], f"{seconds}s", *command[5:])
    assert done.status == 124
    assert f"stopped: the time-out of {seconds} s is over" in verdict(done)
    assert "peak device used 490.0 MiB" in verdict(done)


def test_host_memory(vramtrace: Command) -> None:
    program = vramtrace.script("import time\nmodel = bytearray(b'x') * (400 << 20)\ntime.sleep(100)\n")
    done = vramtrace("dry-run", "--gpu", "l4", "--host-memory", "200MiB", "--", *program)
    assert done.status == 1
    assert "of host memory" in verdict(done)
    assert 'torch.device("cuda")' in verdict(done)


def test_a_program_that_goes_to_the_background_is_waited_for(vramtrace: Command) -> None:
    vramtrace.script("import time\ntime.sleep(1)\n" + ALLOCATE)
    line = f'"{sys.executable}" program.py 64 > log 2>&1 & exit 0'
    done = vramtrace("dry-run", "--gpu", "l4", "--in-place", "--", "sh", "-c", line)
    assert done.status == 0
    assert "peak device used 490.0 MiB" in verdict(done)
    assert "answered 0" in (vramtrace.folder / "log").read_text()


def test_a_read_only_folder(vramtrace: Command) -> None:
    """Runs as another user where this one is root, who may write anywhere."""
    program = vramtrace.script(ALLOCATE)
    vramtrace.folder.chmod(0o555)
    done = vramtrace(
        "dry-run", "--gpu", "l4", "-o", vramtrace.folder.parent / "t.vtrace", "--", *program, "64"
    )
    vramtrace.folder.chmod(0o755)
    assert done.status == 0, done.errors
    assert (vramtrace.folder.parent / "t.vtrace").is_file()


MLP = """
import torch
model = torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 1024)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(1000):
    model(torch.randn(64, 1024, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    print("step", step, flush=True)
torch.save(model.state_dict(), "model.pt")
"""


def test_pytorch_stops_by_itself(vramtrace: Command) -> None:
    done = vramtrace("dry-run", "--gpu", "rtx4090", "--budget", "1GiB", "--", *vramtrace.script(MLP))
    assert done.status == 0, done.errors
    steps = done.output.count("step")
    # One of the first steps has the peak, three more show that it stays; the last one does not return.
    assert 3 <= steps <= 8
    said = verdict(done)
    assert f"{steps + 1} optimizer steps were seen" in said
    assert "not seen: evaluation, saving" in said
    assert "within budget" in said
    assert "it fits" in said
    assert (vramtrace.folder / "model.pt").read_text() == "weights"


def test_pytorch_out_of_memory(vramtrace: Command) -> None:
    program = vramtrace.script(
        "import torch\nkeep = [torch.empty(1 << 30, device='cuda') for _ in range(8)]\n"
    )
    done = vramtrace("dry-run", "--gpu", "rtx4090", "--", *program)
    assert done.status == 1
    assert "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.00 GiB." in done.errors
    assert "it does not fit" in verdict(done)


def test_installed_elsewhere_it_finds_its_libraries(build, tmp_path: Path) -> None:
    prefix = tmp_path / "prefix"
    for source, target in (
        (build.folder / "bin/vramtrace", prefix / "bin"),
        (build.recorder, prefix / "lib"),
    ):
        target.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)
    shutil.copytree(build.simulator, prefix / "lib" / "vramtrace" / "simulator", symlinks=True)
    link = tmp_path / "vramtrace"
    link.symlink_to(prefix / "bin" / "vramtrace")
    done = subprocess.run(
        [link, "dry-run", "--gpu", "l4", "--", "sh", "-c", "echo $LD_PRELOAD"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith(f"{prefix}/lib/libvramtrace.so:{prefix}/lib/vramtrace/simulator/")
    (prefix / "lib" / "libvramtrace.so").unlink()
    broken = subprocess.run(
        [link, "record", "--", "true"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert broken.returncode == 3
    assert "libvramtrace.so" in broken.stderr


LATE_PEAK = """import torch
model = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for step in range(6000):
    batch = torch.empty(4096 if step == 4500 else 64, 64, device="cuda")
    model(batch).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def test_a_peak_behind_what_was_left_out_is_no_forecast(vramtrace: Command) -> None:
    short = {"VRAMTRACE_MAX_SIZE": "2MiB", "VRAMTRACE_SIM_VALUES": "off"}
    program = vramtrace.script(LATE_PEAK)
    done = vramtrace("dry-run", "--gpu", "l4", "--steps", "all", "--", *program, **short)
    assert done.status == 0, done.errors
    [trace] = done.traces()
    assert trace.stat().st_size <= 2 << 20
    report = json.loads(vramtrace("analyze", "--format", "json", trace.name).output)
    [device] = report["devices"]
    assert device["peak_allocated"]["moment"]["step"] == 4500
    assert report["steps"]["completed"] == 6000
    refused = vramtrace("forecast", trace.name, "--gpu", "l4")
    assert refused.status == 3
    assert "lies behind events that were left out" in refused.errors
