"""Adapters on every linear layer but the head: PEFT's, or over weights packed to four bits by PyTorch alone.

The packed form is the one that FakeGPU's published QLoRA rows were measured with: two codes a byte, a scale
a block, a table of the two values of each byte, and the frozen weight unpacked again in the backward pass.
"""

from __future__ import annotations

import math
from typing import Any

import torch

BLOCK = 64
#: The type of a block's scale, as the column `quant` names it.
SCALES = {"fp32": torch.float32, "bf16": torch.bfloat16}


def unpack(
    codes: torch.Tensor, scales: torch.Tensor, table: torch.Tensor, shape: tuple[int, int]
) -> torch.Tensor:
    indices = codes.to(torch.int32)
    values = torch.nn.functional.embedding(indices, table).reshape(-1)
    del indices
    return (values.view(-1, BLOCK) * scales.to(table.dtype).unsqueeze(1)).reshape(shape)


class PackedProduct(torch.autograd.Function):
    @staticmethod
    def forward(context, inputs, codes, scales, table, shape) -> torch.Tensor:
        context.save_for_backward(codes, scales, table)
        context.shape = shape
        return torch.nn.functional.linear(inputs, unpack(codes, scales, table, shape))

    @staticmethod
    def backward(context, gradient) -> tuple:
        if not context.needs_input_grad[0]:
            return None, None, None, None, None
        return gradient @ unpack(*context.saved_tensors, context.shape), None, None, None, None


class PackedLinear(torch.nn.Module):
    def __init__(
        self, linear: torch.nn.Linear, rank: int, alpha: int, dropout: float, scales: torch.dtype
    ) -> None:
        super().__init__()
        self.shape = (linear.out_features, linear.in_features)
        count = linear.weight.numel()
        kind = linear.weight.dtype
        self.register_buffer("codes", torch.zeros(count // 2, dtype=torch.uint8))
        self.register_buffer("scales", torch.ones(count // BLOCK, dtype=scales))
        self.register_buffer("table", torch.zeros(256, 2, dtype=kind))
        self.lora_A = torch.nn.Parameter(torch.empty(rank, linear.in_features))
        self.lora_B = torch.nn.Parameter(torch.zeros(linear.out_features, rank))
        torch.nn.init.kaiming_uniform_(self.lora_A, a=math.sqrt(5))
        self.dropout = torch.nn.Dropout(dropout)
        self.scale = alpha / rank

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        base = PackedProduct.apply(inputs, self.codes, self.scales, self.table, self.shape)
        adapted = self.dropout(inputs).to(self.lora_A.dtype)
        adapted = torch.nn.functional.linear(torch.nn.functional.linear(adapted, self.lora_A), self.lora_B)
        return base + adapted.to(base.dtype) * self.scale


def pack(model: torch.nn.Module, technique: dict[str, Any]) -> torch.nn.Module:
    head = model.get_output_embeddings()
    scales = next(kind for name, kind in SCALES.items() if f"{name} absmax" in technique["quant"])
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, torch.nn.Linear) and child is not head:
                packed = PackedLinear(
                    child, technique["lora_rank"], technique["lora_alpha"], technique["lora_dropout"], scales
                )
                setattr(parent, name, packed)
    return model


def add_adapters(model: torch.nn.Module, technique: dict[str, Any]) -> torch.nn.Module:
    if technique["method"] == "qlora":
        return pack(model, technique)
    from peft import LoraConfig, get_peft_model

    targets = technique["lora_targets"]
    return get_peft_model(
        model,
        LoraConfig(
            r=technique["lora_rank"],
            lora_alpha=technique.get("lora_alpha", 16),
            lora_dropout=technique["lora_dropout"],
            bias="none",
            task_type="CAUSAL_LM",
            target_modules=targets if targets == "all-linear" else targets.split(),
        ),
    )
