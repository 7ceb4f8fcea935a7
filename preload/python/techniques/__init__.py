"""Applies memory techniques to a program from outside, for a dry run that proves a forecast.

VRAMTRACE_APPLY="checkpointing:every=2;sgd" names them as `vramtrace forecast --with` does. The program stays
as it is: only public PyTorch interfaces are called, at three places: when torch is complete, when the program
makes its optimizer (its model is complete by then), and when backward() begins. What cannot be done so ends
the program with one line that names the technique, and status 2."""

import os

from _vramtrace.labels.registry import Registry

from . import activations, blocks, loss, lowrank, optimizers, precision
from .refusal import Refusal, refuse
from .scene import Scene

# Each row: a function that takes (scene, options) and adds what it does to the scene.
ROWS = {
    "checkpointing": blocks.checkpointing,
    "selective-checkpointing": blocks.selective_checkpointing,
    "activation-offload": activations.activation_offload,
    "sequence-length": activations.sequence_length,
    "bf16-autocast": precision.autocast,
    "pure-bf16": precision.pure_bf16,
    "foreach-off": optimizers.foreach_off,
    "fused": optimizers.fused,
    "sgd": optimizers.sgd,
    "adafactor": optimizers.adafactor,
    "adamw-8bit": optimizers.adamw_8bit,
    "paged-8bit": optimizers.paged_8bit,
    "lion": optimizers.lion,
    "muon": optimizers.muon,
    "optimizer-in-backward": optimizers.in_backward,
    "optimizer-offload": optimizers.optimizer_offload,
    "gradient-accumulation": optimizers.gradient_accumulation,
    "lora": lowrank.lora,
    "qlora": lowrank.qlora,
    "freeze": blocks.freeze,
    "chunked-cross-entropy": loss.chunked_cross_entropy,
    "sdpa": precision.sdpa,
    "set-to-none": optimizers.set_to_none,
    "ddp-bucket-view": optimizers.bucket_view,
}
# Rows of analyzer/forecast/technique.def that nothing outside of the program can do, and why.
BEYOND = {
    "expandable-segments": "it is a setting of the environment: PYTORCH_CUDA_ALLOC_CONF",
    "tensor-parallel": "the program must be started once a card and shard its own layers",
    "zero1": "the program must be started once a card",
    "zero2": "the program must be started once a card",
    "zero3": "the program must be started once a card and shard its own layers",
}


def parse(text):
    """[(key, {option: text})]. The analyzer has checked the names; what it did not is refused here."""
    chosen = []
    for item in text.split(";"):
        key, _, rest = item.strip().partition(":")
        if not key:
            continue
        if key in BEYOND:
            refuse(key, f"it cannot be applied from outside: {BEYOND[key]}")
        if key not in ROWS:
            refuse(key, "there is no such technique to apply from outside; known: " + ", ".join(ROWS))
        options = {}
        for pair in filter(None, rest.split(",")):
            name, found, value = pair.partition("=")
            if not found:
                refuse(key, f'option "{pair}" has no value')
            options[name.strip()] = value.strip()
        chosen.append((key, options))
    return chosen


def install(torch):
    registry = Registry(torch)
    registry.install()
    scene = Scene(torch, registry)
    for key, options in parse(os.environ["VRAMTRACE_APPLY"]):
        scene.technique = key
        try:
            ROWS[key](scene, options)
        except Refusal as refusal:
            refuse(key, str(refusal))
    scene.install()
