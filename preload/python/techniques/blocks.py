"""Repeated blocks: checkpointing around them, freezing below them.

A block is one of at least two siblings of one class that differ in the number at the end of their name, and
has children of its own; the outermost such siblings count. analyzer/forecast/techniques/blocks.cpp follows
the same rule."""

import functools
import re

from .refusal import Refusal, number

NUMBERED = re.compile(r"^(.*?)(\d+)$")
CONTAINERS = ("Sequential", "ModuleList", "ModuleDict")


def repeated_blocks(module):
    """In the order of the model: the outermost repeated blocks below a module."""
    groups = {}
    for name, child in module.named_children():
        found = NUMBERED.match(name)
        if found and next(child.children(), None) is not None and type(child).__name__ not in CONTAINERS:
            groups.setdefault((found[1], type(child)), []).append(child)
    chosen = {id(child) for group in groups.values() if len(group) > 1 for child in group}
    blocks = []
    for child in module.children():
        blocks += [child] if id(child) in chosen else repeated_blocks(child)
    return blocks


def blocks_of(root):
    blocks = repeated_blocks(root)
    if not blocks:
        raise Refusal("no module of the model repeats")
    return blocks


def checkpointing(scene, options):
    every = number(options, "every", 1)

    def change(root):
        for index, block in enumerate(blocks_of(root)):
            if index % every == 0:
                wrap(block)
        switch_cache_off(root)

    scene.model(change)


def selective_checkpointing(scene, options):
    """What products and attention return is kept, everything else is computed again."""
    torch = scene.torch

    def change(root):
        from torch.utils.checkpoint import create_selective_checkpoint_contexts

        kept = products_of(torch.ops.aten)
        for block in blocks_of(root):
            wrap(block, context_fn=functools.partial(create_selective_checkpoint_contexts, kept))
        switch_cache_off(root)

    scene.model(change)


def products_of(aten):
    names = (
        "mm",
        "addmm",
        "convolution",
        "_scaled_dot_product_flash_attention",
        "_scaled_dot_product_efficient_attention",
        "_scaled_dot_product_cudnn_attention",
    )
    return [getattr(aten, name).default for name in names if hasattr(aten, name)]


def wrap(block, **settings):
    from torch.utils.checkpoint import checkpoint

    forward = block.forward

    @functools.wraps(forward)
    def checkpointed(*arguments, **keywords):
        if not block.training:
            return forward(*arguments, **keywords)
        return checkpoint(forward, *arguments, use_reentrant=False, **settings, **keywords)

    block.forward = checkpointed


def switch_cache_off(root):
    """transformers does the same: a recomputed block would write into the cache again."""
    for module in root.modules():
        config = getattr(module, "config", None)
        if getattr(config, "use_cache", False):
            config.use_cache = False


def freeze(scene, options):
    """All but the last `blocks` repeated ones and what comes after them."""
    count = number(options, "blocks", 1)

    def change(root):
        blocks = blocks_of(root)
        last = blocks[-count:]
        kept = {id(p) for block in last for p in block.parameters()}
        order = [id(p) for p in root.parameters()]
        after = max((order.index(id(p)) for p in blocks[-1].parameters()), default=-1)
        kept.update(order[after + 1 :])
        for parameter in root.parameters():
            if id(parameter) not in kept:
                parameter.requires_grad_(False)

    scene.model(change)
