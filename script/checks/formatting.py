"""clang-format, ruff, and what no formatter looks at."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from script.checks.outcome import Outcome, failed, judge, passed
from script.checks.process import JOBS, ROOT, run, tracked_files

CXX = ("*.cpp", "*.h", "*.c", "*.cc")
PYTHON_SCRIPTS = ("script", "tests", "preload", "analyzer")


def clang_format() -> Outcome:
    files = [str(path) for path in tracked_files(*CXX)]
    command = ["xargs", "-0", "-P", str(JOBS), "-n", "20", "clang-format-14", "--dry-run", "-Werror"]
    done = subprocess.run(
        command, cwd=ROOT, input="\0".join(files), text=True, capture_output=True, check=False
    )
    if done.returncode == 0:
        return passed("lint/clang-format")
    wrong = sorted(set(re.findall(r"^(\S+?):\d+:\d+: error", done.stderr, re.MULTILINE)))
    names = [str(Path(path).relative_to(ROOT)) for path in wrong] or [done.stderr]
    return failed("lint/clang-format", "clang-format-14 -i " + " ".join(names))


def ruff(*arguments: str) -> Outcome:
    name = f"lint/ruff-{arguments[0]}"
    folders = [folder for folder in PYTHON_SCRIPTS if tracked_files(f"{folder}/*.py")]
    command = [ROOT / ".venv/bin/ruff", *arguments, *folders]
    status, tail = run(name.replace("/", "-"), command)
    return passed(name) if status == 0 else failed(name, tail)


def plain_text() -> Outcome:
    """No tabs, no trailing blanks, a newline at the end."""
    problems = []
    for path in tracked_files(
        *CXX, "*.py", "*.md", "*.cmake", "*CMakeLists.txt", "*.proto", "*.def", "script/*"
    ):
        text = path.read_text(errors="replace")
        name = path.relative_to(ROOT)
        for number, line in enumerate(text.split("\n"), 1):
            if "\t" in line or line != line.rstrip():
                problems.append(f"{name}:{number}: tab or trailing blank")
        if text and not text.endswith("\n"):
            problems.append(f"{name}: no newline at the end")
    return judge("lint/plain-text", problems)


def check_formatting() -> list[Outcome]:
    return [clang_format(), ruff("check"), ruff("format", "--check"), plain_text()]
