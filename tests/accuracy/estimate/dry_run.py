"""Trains or queries one model built from a config.json, and prints what PyTorch counted, phase by phase.

Runs on the simulated device (or a real one). Prints one JSON object: parameters, and for each phase the bytes
allocated at its end and its peak.
"""

from __future__ import annotations

import argparse
import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import torch
import transformers
from transformers import AutoConfig, masking_utils


def model_class(config) -> type:
    """The class that the config's first architecture names, with its head."""
    return getattr(transformers, config.architectures[0])


# Positions without gaps mean one sequence a row, and no mask. Whether there are gaps is computed on the
# device, which a simulated one does not do: this is its answer for the positions that these runs have.
masking_utils.find_packed_sequence_indices = lambda position_ids: None


def build(options) -> tuple:
    config = AutoConfig.from_pretrained(options.config)
    dtype = {"fp32": torch.float32, "bf16": torch.bfloat16}[options.weights]
    with torch.device("cuda"):
        model = model_class(config)._from_config(config, dtype=dtype, attn_implementation=options.attention)
    if options.checkpointing:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    return config, model


class LowRank(torch.nn.Module):
    """A linear layer with an adapter, as PEFT computes it: base(x) + B(A(dropout(x))) * scale."""

    def __init__(self, base: torch.nn.Linear, rank: int, dropout: float, dtype: torch.dtype) -> None:
        super().__init__()
        self.base = base
        self.lora_A = torch.nn.Linear(
            base.in_features, rank, bias=False, dtype=dtype, device=base.weight.device
        )
        self.lora_B = torch.nn.Linear(
            rank, base.out_features, bias=False, dtype=dtype, device=base.weight.device
        )
        self.dropout = torch.nn.Dropout(dropout) if dropout else torch.nn.Identity()
        self.scale = 2.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result = self.base(x)
        adapted = self.lora_B(self.lora_A(self.dropout(x.to(self.lora_A.weight.dtype)))) * self.scale
        return (result + adapted).to(result.dtype)


def add_adapters(model, rank: int, dropout: float, dtype: torch.dtype) -> None:
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, torch.nn.Linear) and "lm_head" not in name:
                setattr(module, name, LowRank(child, rank, dropout, dtype))


def inputs_of(config, options) -> dict[str, torch.Tensor]:
    batch, sequence = options.batch, options.sequence
    kind = config.model_type
    if kind == "vit":
        size = config.image_size
        pixels = torch.randn(batch, config.num_channels, size, size, device="cuda")
        return {"pixel_values": pixels, "labels": torch.zeros(batch, dtype=torch.long, device="cuda")}
    if kind == "whisper":
        features = torch.randn(batch, config.num_mel_bins, 2 * config.max_source_positions, device="cuda")
        return {
            "input_features": features,
            "labels": torch.zeros(batch, sequence, dtype=torch.long, device="cuda"),
        }
    tokens = torch.zeros(batch, sequence, dtype=torch.long, device="cuda")
    return {"input_ids": tokens, "labels": tokens}


def optimizer_of(options, parameters) -> torch.optim.Optimizer:
    foreach = None if options.foreach == "auto" else options.foreach == "on"
    kinds = {
        "adamw": lambda: torch.optim.AdamW(parameters, foreach=foreach, fused=options.fused or None),
        "sgd": lambda: torch.optim.SGD(parameters, lr=1e-3, foreach=foreach),
        "momentum": lambda: torch.optim.SGD(parameters, lr=1e-3, momentum=0.9, foreach=foreach),
        "adafactor": lambda: torch.optim.Adafactor(parameters),
    }
    return kinds[options.optimizer]()


class Phases:
    def __init__(self) -> None:
        self.rows: dict[str, dict[str, int]] = {}

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        torch.cuda.reset_peak_memory_stats()
        yield
        requested = torch.cuda.memory_stats()
        row = {
            "end": requested["requested_bytes.all.current"],
            "peak": requested["requested_bytes.all.peak"],
            "allocated": torch.cuda.max_memory_allocated(),
            "reserved": torch.cuda.max_memory_reserved(),
        }
        old = self.rows.get(name, row)
        self.rows[name] = {key: max(old[key], row[key]) for key in row}


def train(config, model, options) -> Phases:
    phases = Phases()
    model.train()
    if options.method == "lora":
        add_adapters(
            model,
            options.rank,
            options.dropout,
            torch.float32 if options.adapters == "fp32" else torch.bfloat16,
        )
        if options.checkpointing:
            model.enable_input_require_grads()
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = optimizer_of(options, parameters)
    if options.in_backward:
        optimizer = None
        for parameter in parameters:
            own = optimizer_of(options, [parameter])

            def step(tensor: torch.Tensor, own: torch.optim.Optimizer = own) -> None:
                own.step()
                own.zero_grad()

            parameter.register_post_accumulate_grad_hook(step)
    with phases.phase("load"):
        pass
    inputs = inputs_of(config, options)
    precision = torch.autocast("cuda", dtype=torch.bfloat16) if options.autocast else contextlib.nullcontext()
    for _ in range(options.steps):
        for _ in range(options.accumulation):
            with phases.phase("forward"), precision:
                loss = model(
                    **inputs, **({"use_cache": False} if config.model_type not in {"vit", "bert"} else {})
                ).loss
            with phases.phase("backward"):
                loss.backward()
                del loss
        if optimizer is not None:
            with phases.phase("optimizer"):
                optimizer.step()
            optimizer.zero_grad()
    return phases


def infer(config, model, options) -> Phases:
    phases = Phases()
    model.eval()
    with phases.phase("load"):
        pass
    inputs = inputs_of(config, options)
    inputs.pop("labels")
    with torch.no_grad(), phases.phase("forward"):
        if config.model_type in {"vit", "bert"}:
            model(**inputs)
        elif options.new_tokens:
            from transformers import DynamicCache

            cache = DynamicCache()
            model(**inputs, past_key_values=cache, use_cache=True, logits_to_keep=1)
            for _ in range(options.new_tokens):
                model(input_ids=inputs["input_ids"][:, :1], past_key_values=cache, use_cache=True)
        else:
            model(**inputs, use_cache=True, logits_to_keep=1)
    return phases


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("config", type=Path)
    parser.add_argument("--method", choices=["inference", "full", "lora"], default="full")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--sequence", type=int, default=512)
    parser.add_argument("--new-tokens", type=int, default=0)
    parser.add_argument("--weights", choices=["fp32", "bf16"], default="bf16")
    parser.add_argument("--autocast", action="store_true")
    parser.add_argument("--attention", choices=["sdpa", "eager"], default="sdpa")
    parser.add_argument("--checkpointing", action="store_true")
    parser.add_argument("--optimizer", default="adamw")
    parser.add_argument("--foreach", choices=["auto", "on", "off"], default="auto")
    parser.add_argument("--fused", action="store_true")
    parser.add_argument("--in-backward", action="store_true")
    parser.add_argument("--accumulation", type=int, default=1)
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--adapters", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--steps", type=int, default=3)
    options = parser.parse_args()

    config, model = build(options)
    phases = (infer if options.method == "inference" else train)(config, model, options)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    report = {
        "parameters": parameters,
        "phases": phases.rows,
        **{key: max(row[key] for row in phases.rows.values()) for key in ("peak", "allocated", "reserved")},
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
