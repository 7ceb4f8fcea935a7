"""The outcome of one check or test case, and how the reports of ctest and pytest become outcomes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from xml.etree import ElementTree


class State(Enum):
    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Outcome:
    name: str
    state: State
    detail: str = ""


def passed(name: str) -> Outcome:
    return Outcome(name, State.PASSED)


def failed(name: str, detail: str) -> Outcome:
    return Outcome(name, State.FAILED, detail)


def judge(name: str, problems: list[str]) -> Outcome:
    """A check that passes when it found nothing to complain of."""
    return failed(name, "\n".join(problems)) if problems else passed(name)


def read_junit(path: Path, stage: str) -> list[Outcome]:
    """The test cases of a JUnit file. A missing, broken or empty file is a failure, never a pass."""
    try:
        root = ElementTree.parse(path).getroot()
    except (OSError, ElementTree.ParseError) as error:
        return [failed(stage, f"no readable report of the test cases: {error}")]
    outcomes = [_read_case(case, stage) for case in root.iter("testcase")]
    return outcomes or [failed(stage, "no test case was found")]


def _read_case(case: ElementTree.Element, stage: str) -> Outcome:
    name = "/".join(filter(None, (stage, case.get("classname"), case.get("name"))))
    skipped = case.find("skipped")
    # ctest says "notrun" of a test that skipped itself and of one whose program is missing.
    skipped_itself = skipped is not None and skipped.get("message", "").startswith("SKIP_")
    texts = [_text(child) for tag in ("failure", "error") for child in case.iter(tag)]
    if texts or (case.get("status") in ("fail", "notrun") and not skipped_itself):
        output = case.findtext("system-out") or ""
        return failed(name, "\n".join(filter(None, [*texts, output])) or case.get("status", ""))
    if skipped is not None or case.get("status") == "disabled":
        return Outcome(name, State.SKIPPED, "" if skipped is None else _text(skipped))
    return passed(name)


def _text(element: ElementTree.Element) -> str:
    return "\n".join(filter(None, (element.get("message"), element.text))).strip()
