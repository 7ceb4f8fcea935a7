"""The scripts of the diagnoses: what each reproduces, and which other diagnosis it could be taken for."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
DEFINITION = FOLDER.parents[2] / "analyzer" / "diagnose" / "diagnoses.def"

# Rows that are not checked yet: traces do not hold what they need.
NOT_CHECKED = {"D16", "D22", "D24"}


@dataclass(frozen=True)
class Case:
    script: str
    expected: str  # the diagnosis of the report that it reproduces
    near_miss: tuple[str, ...]  # what must not be said with high confidence, though it looks like it
    gpu: str = "rtx4090"
    environment: dict[str, str] = field(default_factory=dict)
    quick: bool = False  # also in script/test

    def __str__(self) -> str:
        return self.script.removesuffix(".py")


CASES = (
    Case("logits_of_small_model.py", "D10", ("D14", "D17"), quick=True),
    Case("logits_upcast_oom.py", "D10", ("D01",), gpu="rtx3060-12"),
    Case("adam_after_first_step.py", "D08", ("D03",), gpu="rtx3060-12"),
    Case("state_where_none_fits.py", "D08", ("D09",), gpu="rtx3060-12"),
    Case("foreach_temporaries.py", "D09", ("D06", "D08")),
    Case("clipping_copies.py", "D09", ("D06",)),
    Case("summed_loss.py", "D03", ("D08",)),
    Case("memory_bank.py", "D03", ("D02",), quick=True),
    Case("longest_batches_come_late.py", "D02", ("D03",)),
    Case("boxes_of_a_detector.py", "D02", ("D04",)),
    Case("one_long_sample.py", "D04", ("D03",), gpu="rtx3060-12"),
    Case("one_large_slide.py", "D04", ("D02",)),
    Case("pinned_segment.py", "D01", ("D20",), gpu="rtx4080", quick=True),
    Case("growing_batches.py", "D01", ("D03",)),
    Case("gathered_predictions.py", "D05", ("D10",)),
    Case("larger_validation_batch.py", "D05", ("D21",)),
    Case("cloned_state_dict.py", "D06", ("D05", "D07", "D15", "D23")),
    Case("widened_state_dict.py", "D06", ("D05",), gpu="rtx3060-12"),
    Case("checkpoint_that_keeps.py", "D11", ("D13",)),
    Case("frozen_inputs.py", "D11", ("D03",)),
    Case("eager_attention.py", "D14", ("D10", "D11")),
    Case("packed_without_kernel.py", "D14", ("D11",)),
    Case("small_slice.py", "D20", ("D19",), environment={"VRAMTRACE_SIM_TOTAL": "16GiB"}),
    Case(
        "limiter_refuses.py",
        "D20",
        ("D01", "D25"),
        environment={"VRAMTRACE_SIM_FAIL": "allocate:6+", "CUDA_DEVICE_MEMORY_LIMIT": "3000m"},
    ),
    Case("busy_card.py", "D19", ("D20",), gpu="l4", environment={"VRAMTRACE_SIM_CONTEXT": "5GiB"}),
    Case(
        "orphan_beside.py", "D19", ("D18",), gpu="rtx3060-12", environment={"VRAMTRACE_SIM_CONTEXT": "7GiB"}
    ),
    Case("communicators.py", "D18", ("D17",), gpu="rtx3060-12", environment={"VRAMTRACE_SIM_COUNT": "4"}),
    Case("library_buffer.py", "D18", ("D19",)),
    Case("pinned_buffers.py", "D25", ("D20",), environment={"VRAMTRACE_SIM_FAIL": "host:2+"}, quick=True),
    Case("offloaded_optimizer.py", "D25", ("D08",), environment={"VRAMTRACE_SIM_FAIL": "host:3+"}),
    Case("adapters_on_long_input.py", "D13", ("D11",)),
    Case("quantised_small_model.py", "D13", ("D12",)),
    Case("wide_embeddings.py", "D12", ("D10", "D13")),
    Case("experts_left_wide.py", "D12", ("D23",)),
    Case("reference_model.py", "D23", ("D12",)),
    Case("averaged_copy.py", "D23", ("D06",)),
    Case("convolution_workspace.py", "D21", ("D05",), environment={"VRAMTRACE_SIM_CUDNN_WORKSPACE": "3GiB"}),
    Case("benchmarked_shapes.py", "D21", ("D02",), environment={"VRAMTRACE_SIM_CUDNN_WORKSPACE": "2GiB"}),
    Case("shard_after_load.py", "D15", ("D23",), environment={"WORLD_SIZE": "8", "RANK": "0"}),
    Case("flat_buffer.py", "D15", ("D07",), environment={"WORLD_SIZE": "4", "RANK": "0"}),
    Case("resumed_on_card.py", "D07", ("D15", "D23")),
    Case("state_loaded_twice.py", "D07", ("D08", "D09")),
    Case("data_parallel.py", "D17", ("D10",), environment={"VRAMTRACE_SIM_COUNT": "2"}),
    Case("gathered_on_first.py", "D17", ("D18",), environment={"VRAMTRACE_SIM_COUNT": "2"}),
)


def rows() -> list[str]:
    """The ids of diagnoses.def, in its order."""
    return re.findall(r'^VRAMTRACE_DIAGNOSIS\("(D\d+)"', DEFINITION.read_text(), re.M)
