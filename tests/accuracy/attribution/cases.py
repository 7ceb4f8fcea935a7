"""The scripts whose blocks are judged."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
SCRIPTS = FOLDER / "scripts"
TRAINING = FOLDER.parents[1] / "training"
TECHNIQUES = FOLDER.parent / "techniques" / "scripts"


@dataclass(frozen=True)
class Case:
    name: str
    script: Path
    options: str = ""
    packages: tuple[str, ...] = ()  # import names, beyond those of every test

    def __str__(self) -> str:
        return self.name

    @property
    def missing(self) -> list[str]:
        return [name for name in self.packages if importlib.util.find_spec(name) is None]


GPT2 = "--steps 3 --layers 6 --width 512 --heads 8 --vocabulary 16384 --batch 8 --sequence 256"
LLAMA = "--steps 3 --layers 4 --width 512 --inner 1408 --heads 8 --kv-heads 2 --vocabulary 8192 --batch 4"
PLAIN = "--steps 3 --layers 4 --width 512 --heads 8 --vocabulary 8192 --batch 4 --sequence 256"

CASES = (
    Case("mlp", TRAINING / "mlp.py", "--steps 3"),
    Case("resnet50", TRAINING / "vision.py", "--steps 3 --model resnet50 --batch 8 --size 128"),
    Case("vit", TRAINING / "vision.py", "--steps 3 --model vit_b_16 --batch 8 --size 128 --optimizer adamw"),
    Case("gpt2", TRAINING / "gpt2.py", GPT2),
    Case("gpt2-bf16", TRAINING / "gpt2.py", f"{GPT2} --precision bf16"),
    Case("llama-gqa", TECHNIQUES / "llama.py", LLAMA),
    Case("llama-eager", TECHNIQUES / "llama.py", f"{LLAMA} --attention eager"),
    Case("t5", SCRIPTS / "t5.py"),
    Case("lstm", SCRIPTS / "lstm.py"),
    Case("unet", SCRIPTS / "unet.py"),
    Case("lora", SCRIPTS / "lora.py"),
    Case("accumulation", TECHNIQUES / "plain.py", f"{PLAIN} --accumulate 3 --clip 1.0"),
    Case("checkpointing", SCRIPTS / "checkpointing.py"),
    Case("checkpointing-reentrant", SCRIPTS / "checkpointing.py", "--reentrant"),
    Case("amp", SCRIPTS / "amp.py"),
    Case("gan", SCRIPTS / "gan.py"),
    Case("moe", SCRIPTS / "moe.py"),
    Case("ddp", SCRIPTS / "ddp.py"),
    Case("fsdp2", SCRIPTS / "fsdp2.py"),
    Case("generate", TRAINING / "software" / "generate.py"),
    Case("qlora-8bit", TRAINING / "software" / "peft_qlora.py", packages=("peft", "bitsandbytes")),
)
