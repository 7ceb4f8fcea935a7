"""Names for bytes: which block is which weight, buffer, gradient or optimizer state, and which step it is.

Only registration hooks and optimizer step hooks are installed: they leave torch.compile's graphs unchanged.
What happens between steps is asked for by the native side (native.take_requests) when it meets a module it
has no name for, a step's first forward, or an out of memory.

Nothing here keeps a tensor or a module alive, raises into the program, or draws a random number.
"""

from _vramtrace import native

from . import guard, loading, registry, requests, steps, tensors


def install(torch):
    known = None
    if native.switched_off("labels"):
        native.feature("labels", False, "switched off by VRAMTRACE_OFF")
    else:
        native.feature("labels", True, "registration hooks and optimizer step hooks")
        known = registry.Registry(torch)
        known.install()
    labeller = steps.install(torch, known)
    loading.install(torch)
    if known is not None:
        requests.install(torch, known, labeller)
    guard.skip_in_dynamo(torch, guard, registry, steps, tensors, requests)
