"""Configurations and methods on which estimates are compared with dry runs: the options of both."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    model: str  # a name of models.py
    method: str = "full"
    batch: int = 1
    sequence: int = 512
    dtype: str = "bf16"
    autocast: bool = False
    eager: bool = False
    checkpointing: bool = False
    optimizer: str = "adamw"
    accumulation: int = 1
    in_backward: bool = False
    new_tokens: int = 0

    def __str__(self) -> str:
        words = [
            self.model,
            self.method,
            f"{self.batch}x{self.sequence}",
            "autocast" if self.autocast else self.dtype,
        ]
        if self.method != "inference":
            words.append(self.optimizer)
        for name in ("eager", "checkpointing", "in_backward"):
            if getattr(self, name):
                words.append(name.replace("_", " "))
        if self.accumulation > 1:
            words.append(f"{self.accumulation} micro-batches")
        return " ".join(words)

    def estimate_options(self) -> list[str]:
        """Of `vramtrace estimate`."""
        options = ["--method", self.method, "--batch", str(self.batch), "--seq", str(self.sequence)]
        options += ["--precision", "autocast"] if self.autocast else ["--dtype", self.dtype]
        options += ["--attention", "eager"] if self.eager else []
        options += ["--checkpointing"] if self.checkpointing else []
        options += ["--optimizer", self.optimizer, "--accumulation", str(self.accumulation)]
        options += ["--in-backward"] if self.in_backward else []
        options += ["--new-tokens", str(self.new_tokens)] if self.new_tokens else []
        return options

    def dry_run_options(self) -> list[str]:
        """Of dry_run.py."""
        names = {"sgd-momentum": "momentum", "adamw-fused": "adamw"}
        options = ["--method", self.method, "--batch", str(self.batch), "--sequence", str(self.sequence)]
        options += ["--weights", "fp32" if self.autocast else self.dtype]
        options += ["--autocast"] if self.autocast else []
        options += ["--attention", "eager"] if self.eager else []
        options += ["--checkpointing"] if self.checkpointing else []
        options += ["--optimizer", names.get(self.optimizer, self.optimizer)]
        options += ["--fused"] if self.optimizer == "adamw-fused" else []
        options += ["--accumulation", str(self.accumulation)]
        options += ["--in-backward"] if self.in_backward else []
        options += ["--new-tokens", str(self.new_tokens)] if self.new_tokens else []
        return options


SMALL_CASES = [
    Case("gpt2", batch=4, dtype="fp32"),
    Case("Qwen3-0.6B", batch=1, sequence=256),
]

CASES = [
    *SMALL_CASES,
    Case("gpt2", batch=4, sequence=1024, autocast=True),
    Case("gpt2-xl", batch=1, sequence=1024, checkpointing=True, optimizer="sgd-momentum"),
    Case("opt-125m", batch=8, dtype="fp32"),
    Case("opt-1.3b", batch=2, sequence=1024, accumulation=2),
    Case("Llama-3.2-1B", batch=2, sequence=2048),
    Case("Llama-3.2-3B", "lora", batch=4, sequence=768),
    Case("Llama-2-7B", batch=1, sequence=1024, checkpointing=True),
    Case("Llama-2-7B", "lora", batch=1, sequence=2048, checkpointing=True),
    Case("Llama-3.1-8B", batch=1, sequence=512, in_backward=True),
    Case("Mistral-7B", "inference", batch=4, sequence=2048),
    Case("Mixtral-8x7B", "lora", batch=1, sequence=1024, checkpointing=True),
    Case("Qwen2.5-0.5B", batch=2, sequence=512, dtype="fp32"),
    Case("Qwen2.5-7B", "lora", batch=1, sequence=2048, checkpointing=True),
    Case("Qwen3-8B", "inference", batch=1, sequence=4096, new_tokens=8),
    Case("gemma-2-2b", batch=1, sequence=1024, eager=True, checkpointing=True),
    Case("gemma-3-1b", batch=1, sequence=1024, optimizer="adamw-fused"),
    Case("Phi-3-mini", batch=2, sequence=1024, optimizer="sgd"),
    Case("DeepSeek-V2-Lite", "inference", batch=2, sequence=1024),
    Case("t5-base", batch=8, sequence=256, dtype="fp32"),
    Case("bert-base for words", batch=16, sequence=256, dtype="fp32", eager=True),
    Case("vit-large", batch=32, dtype="fp32"),
    Case("whisper-small", batch=4, sequence=128, dtype="fp32"),
]
