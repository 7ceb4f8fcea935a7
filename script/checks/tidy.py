"""clang-tidy over our sources. A source is looked at again only when it, a header it includes, its compile
command or the configuration has changed: a hash of all of them is kept in build/tidy once it passed."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from script.checks import bundles
from script.checks.outcome import Outcome, failed, passed
from script.checks.process import JOBS, ROOT, say

BUILD = ROOT / "build" / "release"
STAMPS = ROOT / "build" / "tidy"
TIDY = "clang-tidy-14"
PRODUCT = (ROOT / "preload", ROOT / "analyzer")
TESTS = (ROOT / "tests",)  # 4 to 10 s a source, for GoogleTest's headers: in the deep look only

# The static analyzer takes 7 to 15 s a source, a quarter of an hour on two cores: it is a stage of its own
# (`script/test analysis`). In tests it walks every path of GoogleTest's macros and finds nothing.
ANALYZER = "clang-analyzer-*"
# With it go the two checks that take a third of all others' time: they walk every function of the headers,
# NVIDIA's and CLI11's too.
DEEP_ONLY = (ANALYZER, "performance-unnecessary-value-param", "bugprone-stringview-nullptr")
OURS = f"^{re.escape(str(ROOT))}/(preload|analyzer|tests)/"
INCLUDED = re.compile(r'^#include "(/.+)"', re.MULTILINE)
LOCATION = re.compile(r"^(/[^:\n]+):\d+:\d+: (?:error|warning): ", re.MULTILINE)


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


class Stamps:
    """Which sources have passed as they are now."""

    def __init__(self, deep: bool) -> None:
        self._folder = STAMPS / ("deep" if deep else "quick")
        self._folder.mkdir(parents=True, exist_ok=True)
        self._included = included_files()
        self._hashes = FileHashes()

    def passed(self, source: bundles.Source) -> bool:
        stamp = self._stamp(source.path)
        return stamp.is_file() and stamp.read_text() == self._key(source)

    def keep(self, source: bundles.Source) -> None:
        self._stamp(source.path).write_text(self._key(source))

    @staticmethod
    def _name(path: Path) -> str:
        return str(path.relative_to(ROOT)).replace("/", "__")

    def _stamp(self, path: Path) -> Path:
        return self._folder / self._name(path)

    def _key(self, source: bundles.Source) -> str:
        key = hashlib.sha256(source.command.encode())
        key.update(self._hashes.of(ROOT / ".clang-tidy"))
        key.update(self._hashes.of(source.path))
        words = shlex.split(source.command)
        output = words[words.index("-o") + 1] if "-o" in words else ""
        for name in self._included.get(output, []):
            path = (BUILD / name).resolve()
            if ROOT in path.parents:
                key.update(name.encode() + self._hashes.of(path))
        return key.hexdigest()


def tidy(path: Path, database: Path, checks: str = "", *options: str) -> str:
    """Complaints, or an empty string."""
    command = [
        TIDY,
        "--quiet",
        "-p",
        str(database),
        f"--config-file={ROOT}/.clang-tidy",
        f"--header-filter={OURS}",
        *options,
    ]
    command += [f"--checks={checks}"] if checks else []
    done = subprocess.run([*command, str(path)], cwd=ROOT, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def blamed(complaints: str) -> dict[Path, str]:
    """File, a source or a header -> what was said of it."""
    said: dict[Path, list[str]] = {}
    starts = [match.start() for match in LOCATION.finditer(complaints)]
    for start, end in zip(starts, [*starts[1:], len(complaints)]):
        text = complaints[start:end]
        said.setdefault(Path(LOCATION.match(text)[1]).resolve(), []).append(text)
    return {path: "".join(texts) for path, texts in said.items()} or {ROOT / TIDY: complaints}


def tidy_bundle(bundle: bundles.Bundle, checks: str) -> dict[Path, str]:
    """Where a bundle does not compile, each half is tried, in the end each source."""
    # Without the compiler's own warnings: a name of one source may hide one of another. The builds have them.
    complaints = tidy(bundle.path, bundle.database, checks, "--extra-arg=-w")
    if not complaints:
        return {}
    if "clang-diagnostic-error" in complaints and len(bundle.sources) > 1:
        say(f"  clang-tidy: bundle {bundle.path.stem} does not compile as one, it is taken apart")
        halves = bundles.halves(bundle)
        return {path: text for half in halves for path, text in tidy_bundle(half, checks).items()}
    return blamed(complaints)


def compiled(entry: dict[str, str]) -> Iterator[bundles.Source]:
    """The source of a compile command, or those that CMake has put into one (UNITY_BUILD)."""
    path = Path(entry["file"])
    members = INCLUDED.findall(path.read_text()) if path.parent.name == "Unity" else [str(path)]
    for member in members:
        command = entry["command"].replace(str(path), member)
        yield bundles.Source(Path(member).resolve(), command, entry["directory"])


def sources(folders: tuple[Path, ...]) -> list[bundles.Source]:
    found: dict[Path, bundles.Source] = {}
    for entry in json.loads((BUILD / "compile_commands.json").read_text()):
        for source in compiled(entry):
            path = source.path
            if any(folder in path.parents for folder in folders) and path.suffix in (".cpp", ".cc"):
                found.setdefault(path, source)
    return [found[path] for path in sorted(found)]


def quick_look(stale: list[bundles.Source], stamps: Stamps) -> dict[Path, str]:
    """Without what takes longest, many sources at a time."""
    checks = ",".join(f"-{check}" for check in DEEP_ONLY)

    def look(bundle: bundles.Bundle) -> dict[Path, str]:
        said = tidy_bundle(bundle, checks)
        if said.keys() <= {source.path for source in bundle.sources}:  # else in a header of who knows which
            for source in bundle.sources:
                if source.path not in said:
                    stamps.keep(source)
        return said

    with ThreadPoolExecutor(JOBS) as pool:
        results = list(pool.map(look, bundles.make(stale, STAMPS / "bundles")))
    return {path: text for result in results for path, text in result.items()}


def deep_look(stale: list[bundles.Source], stamps: Stamps) -> dict[Path, str]:
    """Each source alone: the static analyzer looks at functions of the main file only."""

    def look(source: bundles.Source) -> str:
        said = tidy(source.path, BUILD, f"-{ANALYZER}" if ROOT / "tests" in source.path.parents else "")
        if not said:
            stamps.keep(source)
        return said

    with ThreadPoolExecutor(JOBS) as pool:
        return {source.path: text for source, text in zip(stale, pool.map(look, stale)) if text}


def check_tidy(deep: bool = False) -> list[Outcome]:
    if not (BUILD / "compile_commands.json").is_file():
        return [failed("tidy", "compile_commands.json is missing: the release build comes first")]
    all_sources, stamps = sources(PRODUCT + TESTS if deep else PRODUCT), Stamps(deep)
    stale = [source for source in all_sources if not stamps.passed(source)]
    say(f"  clang-tidy: {len(stale)} of {len(all_sources)} sources have changed since they passed")
    started = time.monotonic()
    said = deep_look(stale, stamps) if deep else quick_look(stale, stamps)
    named = {source.path for source in all_sources} | said.keys()
    outcomes = []
    for path in sorted(named):
        name = f"tidy/{path.relative_to(ROOT) if ROOT in path.parents else path}"
        outcomes.append(failed(name, said[path]) if path in said else passed(name))
    say(f"  clang-tidy: {time.monotonic() - started:.1f} s")
    return outcomes or [failed("tidy", "no source was found")]
