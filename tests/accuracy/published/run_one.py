"""Runs one case and writes what PyTorch counted: run_one.py CASE.json RESULT.json.

A case is built from its columns alone. The loops are written after what the sources say of their scripts
(README.md).
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import architectures
import torch
from lowrank import add_adapters

Case = dict[str, Any]
STEPS = 4  # the sources' three or four: the optimizer's state appears in the first, the second is whole
#: xMem's loop clears gradients where an iteration begins (0), before backward (1), never (2); null means 0.
ZERO_GRAD = {"null": 0, "0": 0, "1": 1, "2": 2}


def optimizer_of(case: Case, parameters: list[torch.nn.Parameter]) -> torch.optim.Optimizer:
    text = case["optimizer"]
    kind = getattr(torch.optim, re.search(r"(\w+)\(", text).group(1))
    settings = {"foreach": False} if "foreach=False" in text else {}
    return kind(parameters, lr=1e-3, **settings)


def tokens_of(case: Case, vocabulary: int, device: str) -> torch.Tensor:
    return torch.randint(100, vocabulary, (case["batch"], case["length"])).to(device)


# -- xMem: full precision, a data loader's batches, gradients cleared in one of three places ---------------


def image_batches(case: Case) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    side = case["length"]
    for _ in range(STEPS):
        images = torch.zeros(case["batch"], 3, side, side)
        yield images, torch.zeros(case["batch"], dtype=torch.long)


def train_images(case: Case) -> None:
    model = architectures.vision_model(case["model"]).to("cuda")
    model.train()
    criterion = torch.nn.CrossEntropyLoss()
    optimizer = optimizer_of(case, list(model.parameters()))
    mode = ZERO_GRAD[case["technique"]["zero_grad"]]
    for images, labels in image_batches(case):
        if mode == 0:
            optimizer.zero_grad()
        images, labels = images.to("cuda"), labels.to("cuda")  # noqa: PLW2901 - the last batch goes here
        outputs = model(images)
        loss = criterion(outputs, labels)
        if mode == 1:
            optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        _, _predicted = torch.max(outputs, 1)


def train_plain_language(case: Case) -> None:
    kind, config = architectures.language_config(case["shape"], "sdpa", case["model"])
    try:
        model = kind(config)
    except ValueError:  # this class has no attention by SDPA
        kind, config = architectures.language_config(case["shape"], "eager", case["model"])
        model = kind(config)
    model.to("cuda")
    model.train()
    optimizer = optimizer_of(case, list(model.parameters()))
    mode = ZERO_GRAD[case["technique"]["zero_grad"]]
    for _ in range(STEPS):
        if mode == 0:
            optimizer.zero_grad()
        tokens = tokens_of(case, config.vocab_size, "cuda")
        batch = {"input_ids": tokens, "attention_mask": torch.ones_like(tokens), "labels": tokens.clone()}
        outputs = model(**batch)
        loss = outputs.loss
        if mode == 1:
            optimizer.zero_grad()
        loss.backward()
        optimizer.step()


# -- FakeGPU: one optimizer step over accumulated microbatches in bfloat16 ---------------------------------


def finetune(case: Case) -> None:
    technique = case["technique"]
    kind, config = architectures.language_config(case["shape"], "sdpa", case["model"])
    config.use_cache = False
    model = kind(config).to(torch.bfloat16)
    if technique["method"] != "full":
        model = add_adapters(model, technique)
    if technique["checkpointing"]:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        if technique["method"] != "full":
            model.enable_input_require_grads()
    model.train()
    model.to("cuda")
    batches = []
    for _ in range(technique["grad_accum"]):
        tokens = tokens_of(case, config.vocab_size, "cuda")
        labels = tokens.clone()
        labels[:, : case["length"] // 2] = -100
        places = torch.arange(case["length"]).view(1, 1, -1).expand(3, case["batch"], -1)
        batches.append((tokens, labels, places.clone().to("cuda")))
    optimizer = optimizer_of(case, [p for p in model.parameters() if p.requires_grad])
    for number, (tokens, labels, places) in enumerate(batches, 1):
        outputs = model(input_ids=tokens, labels=labels, position_ids=places, use_cache=False)
        loss = outputs.loss / technique["grad_accum"]
        loss.backward()
        if number < len(batches):
            del outputs, loss
    optimizer.step()


def infer(case: Case) -> None:
    """The prompt, then one token after the other, with the key-value cache."""
    kind, config = architectures.language_config(case["shape"], "sdpa", case["model"])
    with torch.device("cuda"):
        torch.set_default_dtype(torch.bfloat16)
        model = kind(config)
        torch.set_default_dtype(torch.float32)
    model.eval()
    tokens = tokens_of(case, config.vocab_size, "cuda")
    mask = torch.ones_like(tokens)
    generated = int(re.search(r"(\d+) generated", case["task"]).group(1))
    with torch.inference_mode():
        outputs = model(input_ids=tokens, attention_mask=mask, use_cache=True)
        token = torch.argmax(outputs.logits[:, -1, :], dim=-1, keepdim=True)
        for _ in range(generated - 1):
            mask = torch.cat([mask, torch.ones((mask.shape[0], 1), dtype=mask.dtype, device="cuda")], dim=1)
            outputs = model(
                input_ids=token, attention_mask=mask, past_key_values=outputs.past_key_values, use_cache=True
            )
            token = torch.argmax(outputs.logits[:, -1, :], dim=-1, keepdim=True)


def run(case: Case) -> None:
    if "build" in case["shape"]:
        train_images(case)
    elif case["task"].startswith("infer"):
        infer(case)
    elif "Trainer" in case["optimizer"]:
        from trainer import train

        train(case)
    elif case["task"].startswith("finetune"):
        finetune(case)
    else:
        train_plain_language(case)


def main() -> int:
    case = json.loads(Path(sys.argv[1]).read_text())
    torch.manual_seed(0)
    result: dict[str, Any] = {"out_of_memory": False}
    try:
        run(case)
    except torch.cuda.OutOfMemoryError:
        result["out_of_memory"] = True
    result["allocated"] = torch.cuda.max_memory_allocated()
    result["reserved"] = torch.cuda.max_memory_reserved()
    Path(sys.argv[2]).write_text(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
