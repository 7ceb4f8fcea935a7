"""The programs, and the techniques that are put to the proof on each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
TRAINING = FOLDER.parents[1] / "training"

# Small enough for seconds each, large enough that no single workspace decides the peak.
PROGRAMS = {
    "gpt2": (TRAINING / "gpt2.py", "--steps 3 --batch 8 --sequence 512"),
    "llama": (FOLDER / "scripts/llama.py", "--steps 3 --batch 4"),
    "llama-eager": (FOLDER / "scripts/llama.py", "--steps 3 --batch 4 --attention eager"),
    "plain": (FOLDER / "scripts/plain.py", "--steps 3 --batch 8 --clip 1.0"),
    "plain-zeros": (FOLDER / "scripts/plain.py", "--steps 4 --gradients zeros"),
    "plain-late": (FOLDER / "scripts/plain.py", "--steps 4 --gradients late"),
    "plain-ddp": (FOLDER / "scripts/plain.py", "--steps 4 --ddp --gradients zeros"),
    "resnet50": (TRAINING / "vision.py", "--steps 3 --batch 32 --model resnet50 --optimizer adamw"),
    "vit": (TRAINING / "vision.py", "--steps 3 --batch 32 --model vit_b_16 --optimizer adamw"),
    "mlp": (TRAINING / "mlp.py", "--steps 3 --batch 256 --hidden 4096"),
}
SMALL = (
    TRAINING / "gpt2.py",
    "--steps 3 --layers 4 --width 256 --heads 4 --vocabulary 8192 --batch 4 --sequence 128",
)
SINGLE = (
    "checkpointing",
    "checkpointing:every=2",
    "bf16-autocast",
    "pure-bf16",
    "foreach-off",
    "fused",
    "sgd",
    "adafactor",
    "adamw-8bit",
    "paged-8bit",
    "lion",
    "optimizer-in-backward",
    "lora",
    "lora:rank=64,targets=attention",
    "qlora",
    "freeze",
    "chunked-cross-entropy",
    "sdpa",
    "set-to-none",
    "ddp-bucket-view",
    "selective-checkpointing",
    "activation-offload",
    "muon",
    "optimizer-offload",
    "gradient-accumulation:steps=2",
    "gradient-accumulation:steps=4",
    "sequence-length:length=256",
)
PAIRS = (
    "checkpointing;bf16-autocast",
    "checkpointing;pure-bf16",
    "checkpointing;foreach-off",
    "checkpointing;fused",
    "checkpointing;sgd",
    "checkpointing;adafactor",
    "checkpointing;adamw-8bit",
    "checkpointing;lora",
    "checkpointing;qlora",
    "checkpointing;chunked-cross-entropy",
    "checkpointing;optimizer-in-backward",
    "bf16-autocast;foreach-off",
    "bf16-autocast;adamw-8bit",
    "bf16-autocast;lora",
    "bf16-autocast;sgd",
    "pure-bf16;adamw-8bit",
    "pure-bf16;lora",
    "pure-bf16;fused",
    "pure-bf16;optimizer-in-backward",
    "lora;adamw-8bit",
)


@dataclass(frozen=True)
class Case:
    program: str
    techniques: str  # separated by semicolons; empty: the base

    def __str__(self) -> str:
        return f"{self.program} {self.techniques or 'as it is'}"


def all_cases() -> list[Case]:
    return [Case(program, t) for program in PROGRAMS for t in (*SINGLE, *PAIRS)]
