"""What the repository as a whole must look like."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from script.checks.outcome import Outcome, judge
from script.checks.process import ROOT, say, tracked_files

TOP_LEVEL = {
    "CMakeLists.txt", "CMakePresets.json", "README.md", "preload", "analyzer", "viewer", "tests", "script",
}  # fmt: skip
SOURCES = ("*.cpp", "*.h", "*.py", "*.ts", "*.tsx", "*.cmake", "*CMakeLists.txt", "script/*")
LONG_FILE_LINES = 400
# Folders of people and build machines; tests may speak of /home/user and /home/u.
MACHINE_PATH = re.compile(
    r"(?<![\w.$}~-])(?:/(?:home|Users)/(?!user/|u/)[\w.-]+/|/root/|/(?:builds|workspace)/\w"
    rf"|{re.escape(str(ROOT))}\b)"
)
REGISTRY = re.compile(
    r"https?://[\w.-]*(?:pypi|pythonhosted|npmjs|registry|mirror|artifactory|nexus)[\w.-]*", re.I
)


def machine_paths() -> Outcome:
    problems = []
    for path in tracked_files():
        if path == Path(__file__).resolve() or b"\0" in path.read_bytes()[:8192]:
            continue
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            for pattern, what in ((MACHINE_PATH, "path of a machine"), (REGISTRY, "registry's address")):
                if pattern.search(line):
                    problems.append(f"{path.relative_to(ROOT)}:{number}: {what}: {line.strip()[:120]}")
    return judge("hygiene/machine-paths", problems)


def readmes() -> Outcome:
    """Every folder that holds sources says what belongs in it. Folders of data only need none."""
    folders = {path.parent for path in tracked_files(*SOURCES)}
    folders = {parent for folder in folders for parent in (folder, *folder.parents) if ROOT in parent.parents}
    lacking = sorted(folder for folder in folders if not (folder / "README.md").is_file())
    return judge("hygiene/readmes", [f"{folder.relative_to(ROOT)}: no README.md" for folder in lacking])


def top_level() -> Outcome:
    names = {path.relative_to(ROOT).parts[0] for path in tracked_files()}
    extra = sorted(name for name in names - TOP_LEVEL if not name.startswith("."))
    return judge("hygiene/top-level", [f"{name}: does not belong at the top" for name in extra])


def executable_scripts() -> Outcome:
    problems = []
    for path in tracked_files("script/*", ".ci/*"):
        starts = path.read_bytes().startswith(b"#!")
        executable = path.stat().st_mode & 0o111 != 0
        if starts != executable:
            problems.append(f"{path.relative_to(ROOT)}: executable bit and #! line disagree")
        first = path.read_text(errors="replace").split("\n", 1)[0] if starts else ""
        if first.endswith("bash"):
            done = subprocess.run(["bash", "-n", path], capture_output=True, text=True, check=False)
            problems += [done.stderr] if done.returncode else []
    return judge("hygiene/scripts", problems)


def list_long_files() -> None:
    for path in tracked_files("*.cpp", "*.h", "*.py", "*.ts", "*.tsx"):
        lines = path.read_bytes().count(b"\n")
        if lines > LONG_FILE_LINES:
            say(f"  long file ({lines} lines): {path.relative_to(ROOT)}")


def check_hygiene() -> list[Outcome]:
    list_long_files()
    return [machine_paths(), readmes(), top_level(), executable_scripts()]
