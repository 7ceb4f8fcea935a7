"""Fine-tuning by Hugging Face's own Trainer, as fms-acceleration's benchmark runs it.

Weights in bfloat16, checkpointing, packed rows of one length, AdamW with its default implementation. For
flash-attn, which makes no mask, stands SDPA without one: it takes PyTorch's own build of that kernel.
"""

from __future__ import annotations

import tempfile
from typing import Any

import architectures
import torch
from lowrank import add_adapters
from transformers import Trainer, TrainingArguments

STEPS = 3


class Rows(torch.utils.data.Dataset):
    def __init__(self, count: int, length: int, vocabulary: int) -> None:
        self.rows = torch.randint(100, vocabulary, (count, length))

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {"input_ids": self.rows[index], "labels": self.rows[index]}


def without_masks(model: torch.nn.Module) -> None:
    """For models whose attention transformers looks up by name (since 4.48)."""
    try:
        from transformers.integrations.sdpa_attention import sdpa_attention_forward
        from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
    except ImportError:
        return

    def attend(module, query, key, value, attention_mask, **keywords) -> tuple:
        return sdpa_attention_forward(module, query, key, value, None, **keywords)

    ALL_ATTENTION_FUNCTIONS["flash_attention_2"] = attend
    model.config._attn_implementation = "flash_attention_2"


def train(case: dict[str, Any]) -> None:
    technique = case["technique"]
    if "quant" in technique:
        raise NotImplementedError(f"the loop for {technique['quant']} is not written")
    if technique["world_size"] > 1:
        raise NotImplementedError("the loop for several ranks is not written")
    kind, config = architectures.language_config(case["shape"], "sdpa", case["model"])
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        model = kind(config)
    torch.set_default_dtype(torch.float32)
    config.use_cache = False
    if technique.get("flash_attention"):
        without_masks(model)
    if technique["method"] != "full":
        model = add_adapters(model, technique)
        model.enable_input_require_grads()
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            per_device_train_batch_size=case["batch"],
            gradient_accumulation_steps=technique["grad_accum"],
            gradient_checkpointing=technique["gradient_checkpointing"],
            optim="adamw_torch",
            adam_epsilon=1e-4,
            bf16="autocast" in case["precision"],
            max_steps=STEPS,
            report_to=[],
            save_strategy="no",
            disable_tqdm=True,
        )
        rows = Rows(case["batch"] * STEPS, case["length"], config.vocab_size)
        Trainer(model=model, args=arguments, train_dataset=rows).train()
