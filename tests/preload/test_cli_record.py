"""`vramtrace record`: whatever the program does, it behaves as without the wrapper."""

from __future__ import annotations

import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cli_runs import ALLOCATE, Command


@pytest.fixture
def vramtrace(build, tmp_path: Path) -> Command:
    folder = tmp_path / "my work"
    folder.mkdir()
    return Command(build.folder, folder)


@pytest.fixture
def simulated(build) -> dict[str, str]:
    """The simulated device under `record`, as a GPU would be: preloaded by the user."""
    return {"LD_PRELOAD": build.simulated(recorded=False), "VRAMTRACE_SIM_GPU": "rtx4090"}


@pytest.mark.parametrize(
    ("script", "status"),
    [
        ("exit 0", 0),
        ("exit 7", 7),
        ("kill -TERM $$", -signal.SIGTERM),
        ("kill -INT $$", -signal.SIGINT),
        ("kill -HUP $$", -signal.SIGHUP),
        ("kill -SEGV $$", 128 + signal.SIGSEGV),
        ("kill -KILL $$", 128 + signal.SIGKILL),
    ],
)
def test_the_status_is_the_programs(vramtrace: Command, script: str, status: int) -> None:
    assert vramtrace("record", "--", "sh", "-c", script).status == status


def test_commands_that_cannot_be_run(vramtrace: Command) -> None:
    (vramtrace.folder / "data").write_text("x")
    missing = vramtrace("record", "--", "no-such-command")
    assert missing.status == 127
    assert missing.own_lines() == ["vramtrace: no-such-command: command not found"]
    assert vramtrace("record", "--", "./none").status == 127
    assert vramtrace("record", "--", "./data").status == 126
    assert vramtrace("record", "--").status == 2
    assert vramtrace("record", "-o").status == 2
    assert vramtrace("record", "--bogus", "--", "true").status == 2


def test_streams_and_arguments_are_untouched(vramtrace: Command) -> None:
    done = vramtrace(
        "record", "--", "sh", "-c", 'cat; printf "%s|" "$@"', "sh", "-o", "--", "a b", stdin="in\n"
    )
    assert done.output == "in\n-o|--|a b|"
    without = vramtrace("record", "echo", "--help", "-o", "x")
    assert without.output == "--help -o x\n"
    assert done.traces() == []


def test_nothing_recorded_says_why(vramtrace: Command) -> None:
    lines = vramtrace("record", "-o", "runs/", "--", "true").own_lines()
    assert len(lines) == 1
    assert "nothing was recorded: no process of this run used CUDA" in lines[0]
    assert not (vramtrace.folder / "runs").exists()
    compiler = shutil.which("cc") or shutil.which("gcc-12")
    if compiler is None:
        pytest.skip("no C compiler for a static program")
    (vramtrace.folder / "s.c").write_text("int main(void) { return 4; }")
    subprocess.run([compiler, "-static", "-o", vramtrace.folder / "s", vramtrace.folder / "s.c"], check=True)
    static = vramtrace("record", "--", "./s")
    assert static.status == 4
    assert "statically linked" in static.own_lines()[0]


def test_a_trace_is_named_and_can_be_read(vramtrace: Command, simulated: dict[str, str]) -> None:
    done = vramtrace("record", "--", *vramtrace.script(ALLOCATE), "64", **simulated)
    assert done.status == 0
    assert "answered 0" in done.output
    [trace] = done.traces()
    assert trace.parent == vramtrace.folder
    assert trace.name.startswith("vramtrace-program")
    lines = done.own_lines()
    assert trace.name in lines[-2]
    assert lines[-1] == f"vramtrace: next: vramtrace analyze {trace.name}"
    dump = vramtrace("dump", trace.name)
    assert dump.status == 0
    assert "cudaMalloc" in dump.output
    quiet = vramtrace("record", "-q", "-o", "q.vtrace", "--", *vramtrace.script(ALLOCATE), "1", **simulated)
    assert quiet.own_lines() == []
    assert (vramtrace.folder / "q.vtrace").is_file()


def test_the_trace_says_whether_the_device_is_simulated(
    vramtrace: Command, build, simulated: dict[str, str]
) -> None:
    allocate = vramtrace.script(ALLOCATE)
    real = {"LD_PRELOAD": f"{build.fakes}/libcudart.so.13:{build.fakes}/libcuda.so.1"}
    for preload, name in ((simulated, "simulated.vtrace"), (real, "real.vtrace")):
        assert vramtrace("record", "-o", name, "--", *allocate, "64", **preload).status == 0
        facts = [line for line in vramtrace("dump", name).output.splitlines() if " process " in line]
        assert any("simulated=true" in line for line in facts) == (preload is simulated), facts
        report = vramtrace("analyze", name, "--format", "json").output
        assert json.loads(report)["devices"][0].get("simulated", False) == (preload is simulated)


def test_an_older_trace_is_never_overwritten(vramtrace: Command, simulated: dict[str, str]) -> None:
    (vramtrace.folder / "out.vtrace").write_text("precious")
    done = vramtrace("record", "-o", "out.vtrace", "--", *vramtrace.script(ALLOCATE), "1", **simulated)
    assert (vramtrace.folder / "out.vtrace").read_text() == "precious"
    assert done.own_lines()[-1] == "vramtrace: next: vramtrace analyze out-1.vtrace"


def test_several_processes_make_a_folder(vramtrace: Command, simulated: dict[str, str]) -> None:
    vramtrace.script(ALLOCATE)
    runs = f'"{sys.executable}" program.py 1; "{sys.executable}" program.py 2; exit 3'
    done = vramtrace("record", "--", "sh", "-c", runs, **simulated)
    assert done.status == 3
    traces = done.traces()
    assert len(traces) == 2
    assert {trace.parent.parent for trace in traces} == {vramtrace.folder}
    assert any("2 processes were recorded" in line for line in done.own_lines())
    assert done.own_lines()[-1] == f"vramtrace: next: vramtrace analyze {traces[0].parent.name}"
    report = vramtrace("analyze", traces[0].parent)
    assert report.status == 0
    assert report.output.startswith("A run of 2 processes\n")


def test_the_summary_as_json_is_the_last_line(vramtrace: Command, simulated: dict[str, str]) -> None:
    allocate = vramtrace.script(ALLOCATE)
    done = vramtrace("record", "--format", "json", "-o", "t.vtrace", "--", *allocate, "64", **simulated)
    first, last = done.output.splitlines()
    assert "answered 0" in first
    assert done.own_lines() == []
    path = vramtrace.folder / "t.vtrace"
    traces = [{"path": str(path), "bytes": path.stat().st_size}]
    assert json.loads(last) == {"exit_code": 0, "traces": traces}
    without = vramtrace("record", "--format", "json", "--", "sh", "-c", "exit 5")
    said = json.loads(without.output)
    assert without.status == said["exit_code"] == 5
    assert said["traces"] == []
    assert "no process of this run used CUDA" in said["nothing_recorded"]
    assert vramtrace("record", "--format", "xml", "--", "true").status == 2


def test_a_killed_program_leaves_its_trace(vramtrace: Command, simulated: dict[str, str]) -> None:
    program = ALLOCATE + "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n"
    done = vramtrace("record", "--", *vramtrace.script(program), "64", **simulated)
    assert done.status == 128 + signal.SIGKILL
    [trace] = done.traces()
    assert "cudaMalloc" in vramtrace("dump", trace).output


def test_the_users_preload_comes_after_ours(vramtrace: Command, build) -> None:
    theirs = next(str(p) for p in Path("/lib").rglob("libm.so.6"))
    done = vramtrace("record", "--", "sh", "-c", "echo $LD_PRELOAD", LD_PRELOAD=theirs, PYTHONPATH="/mine")
    assert done.output.split(":") == [str(build.recorder), theirs + "\n"]
    assert vramtrace("record", "--", "sh", "-c", "echo $PYTHONPATH", PYTHONPATH="/mine").output == "/mine\n"


def test_an_unwritable_folder_turns_recording_off(vramtrace: Command, simulated: dict[str, str]) -> None:
    done = vramtrace("record", "-o", "/proc/x/t.vtrace", "--", *vramtrace.script(ALLOCATE), "1", **simulated)
    assert done.status == 0
    assert "answered 0" in done.output
    assert "/proc/x" in done.own_lines()[0]
    assert (
        done.own_lines()[-1]
        == "vramtrace: nothing was recorded: the trace could not be written, as said above"
    )


def test_a_long_environment_is_said(vramtrace: Command) -> None:
    most = {f"LONG{at}": "x" * 100_000 for at in range(10)}
    assert vramtrace("record", "--", "sh", "-c", "echo ${#LONG9}", **most).output == "100000\n"


def wait_for(path: Path, seconds: float = 120) -> str:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if path.is_file() and path.read_text():
            return path.read_text()
        time.sleep(0.02)
    raise TimeoutError(path)


COUNT_INTERRUPTS = """
import os, signal, time
count = 0
def interrupted(number, frame):
    global count
    count += 1
signal.signal(signal.SIGINT, interrupted)
open("ready", "w").write("x")
# However long the first one takes on a busy machine; a second one would be close behind it.
deadline = time.monotonic() + 100
while count == 0 and time.monotonic() < deadline:
    time.sleep(0.02)
deadline = time.monotonic() + 0.5
while time.monotonic() < deadline:
    time.sleep(0.02)
open("count", "w").write(str(count))
raise SystemExit(count)
"""


def test_the_terminals_interrupt_reaches_the_program_once(vramtrace: Command) -> None:
    command = [str(vramtrace.program), "record", "-q", "--", *vramtrace.script(COUNT_INTERRUPTS)]
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(vramtrace.folder)
        os.execve(command[0], command, vramtrace.environment())
    wait_for(vramtrace.folder / "ready")
    os.write(terminal, b"\x03")
    assert wait_for(vramtrace.folder / "count") == "1"
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 1
    os.close(terminal)


def test_an_interrupt_sent_to_the_wrapper_is_handed_on_once(vramtrace: Command) -> None:
    command = [vramtrace.program, "record", "-q", "--", *vramtrace.script(COUNT_INTERRUPTS)]
    with subprocess.Popen(command, cwd=vramtrace.folder, env=vramtrace.environment()) as wrapper:
        wait_for(vramtrace.folder / "ready")
        wrapper.send_signal(signal.SIGINT)
        assert wrapper.wait(120) == 1


def test_a_killed_wrapper_takes_the_program_with_it(vramtrace: Command) -> None:
    code = "import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(300)"
    command = [vramtrace.program, "record", "--", *vramtrace.script(code)]
    with subprocess.Popen(command, cwd=vramtrace.folder, env=vramtrace.environment()) as wrapper:
        program = int(wait_for(vramtrace.folder / "pid"))
        wrapper.kill()
    deadline = time.monotonic() + 60
    while Path(f"/proc/{program}").exists() and time.monotonic() < deadline:
        if "State:\tZ" in Path(f"/proc/{program}/status").read_text():
            break
        time.sleep(0.05)
    else:
        assert not Path(f"/proc/{program}").exists()


def test_the_limit_is_passed_on(vramtrace: Command) -> None:
    shown = vramtrace("record", "--max-size", "64MiB", "--", "sh", "-c", "echo $VRAMTRACE_MAX_SIZE")
    assert shown.output.strip() == "64MiB"
