"""How long the program waits for its DataLoader: a phase mark "data" around each batch that it asks for. The
first of an iterator carries its settings behind the word: "data workers=4 pinned=1 batch=32 length=1000".

Only the iterator's own method is wrapped, in the process that trains; a worker records nothing."""

import functools
import sys

from _vramtrace import native

from .guard import careful

PHASE = "data"


def describe(iterator):
    """What a reader needs to know of the loader; said once an iterator."""
    if getattr(iterator, "_vramtrace_described", False):
        return PHASE
    iterator._vramtrace_described = True
    sampler = getattr(iterator, "_index_sampler", None)
    words = {
        "workers": getattr(iterator, "_num_workers", None),
        "pinned": getattr(iterator, "_pin_memory", None),
        "prefetch": getattr(iterator, "_prefetch_factor", None),
        "batch": getattr(sampler, "batch_size", None),
        "length": length_of(iterator),
    }
    return " ".join([PHASE] + [f"{key}={int(value)}" for key, value in words.items() if value is not None])


def length_of(iterator):
    """Batches an epoch; None for data that do not know how many they are."""
    try:
        return len(iterator)
    except (TypeError, NotImplementedError):
        return None


def begin(iterator):
    if native.recording():
        native.phase(describe(iterator), False)


def end():
    if native.recording():
        native.phase(PHASE, True)


def install(torch):
    module = sys.modules.get("torch.utils.data.dataloader")
    iterator = getattr(module, "_BaseDataLoaderIter", None)
    if iterator is None:
        return
    asked = iterator.__next__
    begins, ends = careful(begin), careful(end)

    @functools.wraps(asked)
    def next_batch(self):
        begins(self)
        try:
            return asked(self)
        except StopIteration:
            self._vramtrace_described = False  # with persistent workers it serves the next epoch too
            raise
        finally:
            ends()

    iterator.__next__ = next_batch
