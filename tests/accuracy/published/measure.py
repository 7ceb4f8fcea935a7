"""`script/accuracy published [--cases FILE]`: dry runs of measurements, each with its own PyTorch."""

from __future__ import annotations

import dataclasses
import json
import os
import statistics
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from recording import Build, default_build, run_python

from script.figures import Figure, say
from tests.accuracy.published.cases import OWN, Case, read
from tests.accuracy.releases.releases import (
    RELEASES,
    NotInstallable,
    Release,
    install,
    other_transformers,
    remove,
)

FOLDER = Path(__file__).resolve().parent
#: What the sources call their cards: the catalogue's name, and a card alike where it has none of that name
#: (the total of memory is then the one that the case states).
CARDS = {
    "NVIDIA GeForce RTX 3060": "rtx3060-12",
    "NVIDIA GeForce RTX 4060": "rtx4060ti-16",
    "NVIDIA A100-SXM4-40GB": "a100-40-sxm",
    "NVIDIA A100-SXM4-80GB": "a100-80-sxm",
    "NVIDIA H100 PCIe": "h100-pcie",
    "NVIDIA L40S": "l40s",
    "NVIDIA RTX PRO 5000 72GB Blackwell": "rtxpro5000-72",
}
#: Kinds that are run; of the others the columns do not say enough, or nobody has written their loop yet.
KINDS = {
    "llm-finetune-alloc": "one optimizer step in bfloat16: full, LoRA, NF4",
    "infer-alloc": "prefill and decoding",
    "7b-finetune-alloc": "Hugging Face's Trainer: full, LoRA",
    "transformer-train-nvml": "full precision, a plain loop",
    "large-fp32-train-nvml": "full precision, a plain loop",
    "cnn-train-nvml": "full precision, a plain loop",
    "oom-verdict": "does it fit the card",
}
#: Of the median's absolute value, in percent, from the issue tracker's targets.
TARGETS = {"llm-finetune-alloc": 0.02, "infer-alloc": 0.02, "cnn-train-nvml": 1.0}


@dataclass(frozen=True)
class Scored:
    case: Case
    predicted: int
    out_of_memory: bool
    problem: str = ""  # why there is no prediction

    @property
    def error(self) -> float:
        """Percent of the truth, signed."""
        return 100 * (self.predicted - self.case.truth) / self.case.truth


def release_of(case: Case) -> Release:
    """The release of the case's minor version; raises NotInstallable when no row has it."""
    minor = case.torch.split(".")[:2]
    for release in RELEASES:
        if release.torch.split(".")[:2] == minor:
            return release
    raise NotInstallable(f"no row of releases.py has PyTorch {case.torch or 'of an unstated version'}")


def run_case(build: Build, case: Case, release: Release, python: Path) -> Scored:
    with tempfile.TemporaryDirectory() as folder:
        description, result = Path(folder) / "case.json", Path(folder) / "result.json"
        description.write_text(json.dumps(dataclasses.asdict(case)))
        own = {"VRAMTRACE_SIM_TOTAL": str(case.total_bytes)} if case.total_bytes else {}
        if case.transformers not in ("", release.transformers):
            own["PYTHONPATH"] = str(other_transformers(release, python, case.transformers))
        try:
            run = run_python(
                build,
                [FOLDER / "run_one.py", description, result],
                Path(folder) / "run.vtrace",
                CARDS.get(case.gpu, case.gpu),
                recorded=False,
                python=python,
                **own,
            )
        except TimeoutError as error:
            return Scored(case, 0, False, str(error))
        if not result.is_file():
            return Scored(case, 0, False, (run.errors.strip().splitlines() or ["no output"])[-1])
        counted = json.loads(result.read_text())
        if counted["out_of_memory"] and not case.is_verdict:
            return Scored(case, counted[case.counter], True, "it runs out of memory, and did not on the card")
        return Scored(case, counted[case.counter], counted["out_of_memory"])


def show(scored: Scored) -> None:
    case = scored.case
    if scored.problem:
        say(f"  {case}: not scored: {scored.problem}")
    elif case.is_verdict:
        say(f"  {case}: {'out of memory' if scored.out_of_memory else 'fits'}; it ran out of memory")
    else:
        peer = "" if case.peer_error is None else f", peer {case.peer_error:+.3f} %"
        said = ", out of memory" if scored.out_of_memory else ""
        say(
            f"  {case}: {case.counter} {scored.predicted:,} B, truth {case.truth:,} B, "
            f"{scored.error:+.4f} %{peer}{said}"
        )


def figures_of_kind(kind: str, scores: list[Scored]) -> list[Figure]:
    good = [scored for scored in scores if not scored.problem]
    basis = f"{len(good)} of {len(scores)} cases scored; {KINDS[kind]}"
    if not good:
        return [Figure(f"published {kind}: scored", 0, f"of {len(scores)}", "higher", basis, len(scores))]
    if good[0].case.is_verdict:
        right = sum(scored.out_of_memory for scored in good)
        return [Figure(f"published {kind}: right", right, f"of {len(good)}", "higher", basis, len(good))]
    errors = [abs(scored.error) for scored in good]
    peers = [abs(scored.case.peer_error) for scored in good if scored.case.peer_error is not None]
    figures = [
        Figure(
            f"published {kind}: median", statistics.median(errors), "%", "lower", basis, TARGETS.get(kind)
        ),
        Figure(f"published {kind}: largest", max(errors), "%", "lower", basis),
    ]
    if peers:
        figures.append(
            Figure(
                f"published {kind}: best peer's median",
                statistics.median(peers),
                "%",
                "lower",
                f"as published, {len(peers)} cases",
            )
        )
    return figures


def measure(path: Path | None = None) -> list[Figure]:
    """VRAMTRACE_ONLY_KINDS=transformer-train-nvml,cnn-train-nvml runs those alone."""
    build = default_build()
    wanted = os.environ.get("VRAMTRACE_ONLY_KINDS")
    by_release: dict[Release, list[Case]] = defaultdict(list)
    scores: dict[str, list[Scored]] = defaultdict(list)
    for case in read(path or OWN):
        if case.kind not in KINDS or (wanted and case.kind not in wanted.split(",")):
            continue
        try:
            by_release[release_of(case)].append(case)
        except NotInstallable as error:
            scores[case.kind].append(Scored(case, 0, False, str(error)))
    for release, cases in by_release.items():
        try:
            python = install(release)
            results = [run_case(build, case, release, python) for case in cases]
        except NotInstallable as error:
            results = [Scored(case, 0, False, f"{release} is not installable: {error}") for case in cases]
        finally:
            if not os.environ.get("VRAMTRACE_KEEP_RELEASES"):
                remove(release)
        for scored in results:
            show(scored)
            scores[scored.case.kind].append(scored)
    return [figure for kind in KINDS if kind in scores for figure in figures_of_kind(kind, scores[kind])]
