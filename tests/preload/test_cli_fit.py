"""`vramtrace fit` with programs that need no PyTorch, so that a search takes seconds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_runs import Command, Ended

# Allocates 1,000 MiB and 100 MiB for each of as many samples as its first argument says.
TRAIN = """
import ctypes, sys
cuda = ctypes.CDLL(None)
batch = int(sys.argv[1])
def allocate(mib):
    address = ctypes.c_void_p()
    if cuda.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(mib << 20)):
        sys.exit("out of memory, says the program")
"""
FIXED = TRAIN + "allocate(1000)\n"
GROWING = FIXED + "for sample in range(batch):\n    allocate(100)\n"
# 9,000 MiB beside the context of 426 MiB: 80 samples.
CARD = ("--gpu", "rtx4090", "--total", "9426MiB")


@pytest.fixture
def vramtrace(build, tmp_path: Path) -> Command:
    return Command(build.folder, tmp_path)


def fit(vramtrace: Command, text: str, *options: str) -> Ended:
    return vramtrace("fit", *CARD, *options, "--", *vramtrace.script(text), "{batch}")


def test_finds_the_edge_and_proves_it(vramtrace: Command) -> None:
    done = fit(vramtrace, GROWING)
    assert done.status == 0, done.errors
    assert "80  proved by dry runs: 80 fits, 81 does not (forecast 80)" in done.output
    assert "device used 9.21 GiB (426.0 MiB the context)" in done.output
    assert "81 would need" in done.output
    assert "on a real card" in done.output
    assert [line for line in done.own_lines() if "dry run 4: batch 81" in line]
    assert "dry run 5" not in done.errors
    assert done.traces() == [], "traces stay in a temporary folder"


def test_json_is_one_document(vramtrace: Command) -> None:
    done = fit(vramtrace, GROWING, "--format", "json", "--keep", "runs")
    report = json.loads(done.output)
    [card] = report["cards"]
    assert (card["gpu"], card["kind"], card["largest"]["value"]) == ("rtx4090", "proved", 80)
    assert card["forecast_largest"] == 80
    assert card["safe"] < 80, "a real card needs room beyond a dry run"
    assert [run["value"] for run in report["runs"]] == [4, 8, 80, 81]
    assert [run["end"] for run in report["runs"]] == ["completed"] * 3 + ["out of memory"]
    assert len(done.traces()) == 4, "--keep keeps them"


def test_several_cards(vramtrace: Command) -> None:
    program = vramtrace.script(GROWING)
    done = vramtrace("fit", "--gpu", "rtx4090,l4", "--format", "json", "--", *program, "{batch}")
    assert done.status == 0, done.errors
    report = json.loads(done.output)
    assert [card["gpu"] for card in report["cards"]] == ["rtx4090", "l4"]
    assert all(card["kind"] == "proved" for card in report["cards"])
    assert len(report["runs"]) == 6, "both are of compute capability 8.9"


def test_not_even_one_fits(vramtrace: Command) -> None:
    done = fit(vramtrace, GROWING.replace("allocate(1000)", "allocate(9000)"))
    assert done.status == 1
    assert "none: not even 1 fits, proved by a dry run" in done.output
    assert "1 would need" in done.output


def test_only_multiples_are_accepted(vramtrace: Command) -> None:
    done = fit(vramtrace, GROWING + "assert batch % 32 == 0, 'batch must be a multiple of 32'\n")
    assert done.status == 0, done.errors
    assert "64  proved by dry runs: 64 fits, 96 does not" in done.output
    assert "multiples of 32" in done.output


def test_the_program_has_a_bound_of_its_own(vramtrace: Command) -> None:
    done = fit(vramtrace, "import sys\nassert int(sys.argv[1]) <= 50, 'only 50 samples'\n" + GROWING)
    assert done.status == 0, done.errors
    assert "50  which fits, and no larger one is allowed or accepted" in done.output


def test_a_program_that_fails_is_quoted(vramtrace: Command) -> None:
    done = fit(vramtrace, "raise SystemExit('no data set in /data')")
    assert done.status == 1
    assert "the program ends with status 1 for batch 4, 8" in done.output
    assert "  | no data set in /data" in done.output


def test_a_program_that_is_not_there(vramtrace: Command) -> None:
    done = vramtrace("fit", *CARD, "--", "no-such-program", "{batch}")
    assert done.status == 127
    assert "no-such-program: command not found" in done.output


def test_a_program_that_hangs(vramtrace: Command) -> None:
    done = fit(vramtrace, "print('waiting', flush=True)\nimport time\ntime.sleep(200)", "--timeout", "3s")
    assert done.status == 124
    assert (
        "with batch 4 the program did not come to an end: stopped: the time-out of 3 s is over" in done.output
    )
    assert "  | waiting" in done.output


def test_a_value_that_changes_nothing(vramtrace: Command) -> None:
    done = fit(vramtrace, FIXED)
    assert done.status == 3
    assert "{batch} does not change the memory: with 4 and 8 the program asks for the same" in done.output


def test_a_program_without_a_gpu(vramtrace: Command) -> None:
    done = fit(vramtrace, "print('only the processor')")
    assert done.status == 3
    assert "did not use the simulated GPU" in done.output


def test_runs_that_do_not_repeat(vramtrace: Command) -> None:
    # Each run takes 200 MiB more than the one before.
    text = (
        "import pathlib\ncount = pathlib.Path(__file__).with_suffix('.count')\n"
        "before = int(count.read_text()) if count.exists() else 0\ncount.write_text(str(before + 1))\n"
    )
    done = fit(vramtrace, text + GROWING + "for run in range(before):\n    allocate(200)\n", "--in-place")
    assert done.status == 3
    assert "not deterministic: two runs of batch 4 took" in done.output


def test_no_placeholder(vramtrace: Command) -> None:
    done = vramtrace("fit", *CARD, "--", "python", "train.py", "--batch", "8")
    assert done.status == 2
    assert "no placeholder; write {batch} where the value goes" in done.errors


def test_another_placeholder(vramtrace: Command) -> None:
    program = vramtrace.script(GROWING)
    done = vramtrace("fit", *CARD, "--to", "20", "--", *program, "{sequence}")
    assert done.status == 0, done.errors
    assert "largest sequence" in done.output
    both = vramtrace("fit", *CARD, "--", *program, "{sequence}", "{width}")
    assert both.status == 2
    assert "--vary" in both.errors


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--gpu", "rtx4900"), "rtx4090"),
        (("--gpu", "rtx4090", "--from", "9", "--to", "8"), "--from 9 is above --to 8"),
        (("--gpu", "rtx4090", "--total", "lots"), "--total lots: not a size"),
        (("--gpu", "rtx4090", "--timeout", "soon"), "--timeout soon: not a time"),
        ((), "--gpu"),
    ],
)
def test_wrong_options(vramtrace: Command, options: tuple[str, ...], says: str) -> None:
    done = vramtrace("fit", *options, "--", "true", "{batch}")
    assert done.status == 2
    assert says in done.errors
    assert done.output == ""
