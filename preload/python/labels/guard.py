"""Hooks of ours never fail the program that calls them, and are invisible to torch.compile."""

import functools

from _vramtrace import native

_hooks = []


def hook(function):
    """A function that the program calls through torch. An Exception switches labels off, said in the trace;
    KeyboardInterrupt and its like are the program's and pass."""

    @functools.wraps(function)
    def guarded(*arguments, **keywords):
        if guarded.off:
            return None
        try:
            function(*arguments, **keywords)
        except Exception as error:
            guarded.off = True
            native.feature("labels", False, "%s: %s: %s" % (function.__name__, type(error).__name__, error))
        return None

    guarded.off = False
    guarded._torchdynamo_disable = True  # what torch._dynamo.disable() sets, without importing torch._dynamo
    _hooks.append(guarded)
    _hooks.append(function)
    return guarded


def skip_in_dynamo(torch, *modules):
    """Dynamo does not compile the frames of our functions."""
    try:
        skip = torch._C._dynamo.eval_frame.skip_code
    except AttributeError:  # before 2.1
        return
    for function in _hooks:
        skip(function.__code__)
    for module in modules:
        for value in vars(module).values():
            for function in vars(value).values() if isinstance(value, type) else (value,):
                if hasattr(function, "__code__"):
                    skip(function.__code__)
