"""clang-tidy over our sources. A source is looked at again only when it, a header it includes, its compile
command or the configuration has changed: a hash of all of them is kept in build/tidy once it passed."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from script.checks.outcome import Outcome, failed, passed
from script.checks.process import JOBS, ROOT, say

BUILD = ROOT / "build" / "release"
STAMPS = ROOT / "build" / "tidy"
TIDY = "clang-tidy-14"
PRODUCT = (ROOT / "preload", ROOT / "analyzer")
TESTS = (ROOT / "tests",)  # 4 to 10 s a source, for GoogleTest's headers: in the deep look only


def included_files() -> dict[str, list[str]]:
    """Object file -> files that its last compilation read, as ninja has recorded them."""
    command = ["ninja", "-C", BUILD, "-t", "deps"]
    text = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    found: dict[str, list[str]] = {}
    for block in re.split(r"\n\s*\n", text):
        head, *rest = block.strip().split("\n")
        found[head.partition(":")[0]] = [line.strip() for line in rest]
    return found


class FileHashes:
    def __init__(self) -> None:
        self._known: dict[Path, bytes] = {}

    def of(self, path: Path) -> bytes:
        if path not in self._known:
            self._known[path] = hashlib.sha256(path.read_bytes()).digest() if path.is_file() else b""
        return self._known[path]


def object_of(entry: dict) -> str:
    words = shlex.split(entry["command"])
    return words[words.index("-o") + 1] if "-o" in words else ""


def key_of(entry: dict, included: dict[str, list[str]], hashes: FileHashes) -> str:
    key = hashlib.sha256(entry["command"].encode())
    key.update(hashes.of(ROOT / ".clang-tidy"))
    key.update(hashes.of(Path(entry["file"])))
    for name in included.get(object_of(entry), []):
        path = (BUILD / name).resolve()
        if ROOT in path.parents:
            key.update(name.encode() + hashes.of(path))
    return key.hexdigest()


# Checks that cost more than all others together. The static analyzer takes 7 to 15 s a source instead of 1.5
# to 6 s, a quarter of an hour on two cores: it is a stage of its own (`script/test analysis`), and nothing is
# to be found in tests, where it walks every path of GoogleTest's macros. unnecessary-value-param walks every
# function of the CUDA headers (6.7 s instead of 2.0 s a source of cuBLAS).
ANALYZER = "clang-analyzer-*"
LEFT_OUT = {
    ROOT / "tests": (ANALYZER,),
    ROOT / "preload/simulator": ("performance-unnecessary-value-param",),
}


def options_for(path: Path, deep: bool) -> list[str]:
    left_out = [check for folder, checks in LEFT_OUT.items() if folder in path.parents for check in checks]
    if not deep and ANALYZER not in left_out:
        left_out.append(ANALYZER)
    return ["--checks=" + ",".join(f"-{check}" for check in left_out)] if left_out else []


def tidy_one(path: Path, deep: bool) -> str:
    """Complaints, or an empty string."""
    command = [TIDY, "--quiet", "-p", str(BUILD), *options_for(path, deep), str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def check_tidy(deep: bool = False) -> list[Outcome]:
    database = BUILD / "compile_commands.json"
    if not database.is_file():
        return [failed("lint/clang-tidy", f"{database} is missing: the release build comes first")]
    stamps = STAMPS / ("deep" if deep else "quick")
    stamps.mkdir(parents=True, exist_ok=True)
    included, hashes = included_files(), FileHashes()
    folders = PRODUCT + TESTS if deep else PRODUCT
    entries: dict[Path, dict] = {}
    for entry in json.loads(database.read_text()):
        path = Path(entry["file"]).resolve()
        if any(folder in path.parents for folder in folders) and path.suffix in (".cpp", ".cc"):
            entries.setdefault(path, entry)
    stale, names = [], {}
    for path, entry in sorted(entries.items()):
        stamp = stamps / str(path.relative_to(ROOT)).replace("/", "__")
        key = key_of(entry, included, hashes)
        names[path] = (stamp, key)
        if not stamp.is_file() or stamp.read_text() != key:
            stale.append(path)
    say(f"  clang-tidy: {len(stale)} of {len(entries)} sources have changed since they passed")
    started = time.monotonic()
    outcomes = [passed(f"lint/clang-tidy/{p.relative_to(ROOT)}") for p in entries if p not in stale]
    with ThreadPoolExecutor(JOBS) as pool:
        for path, complaints in zip(stale, pool.map(lambda source: tidy_one(source, deep), stale)):
            name = f"lint/clang-tidy/{path.relative_to(ROOT)}"
            if complaints:
                outcomes.append(failed(name, complaints))
            else:
                names[path][0].write_text(names[path][1])
                outcomes.append(passed(name))
    say(f"  clang-tidy: {time.monotonic() - started:.1f} s")
    return outcomes or [failed("lint/clang-tidy", "no source was found")]
