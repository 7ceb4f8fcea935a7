"""Hooks of ours never fail the program that calls them, and are invisible to torch.compile."""

import functools

from _vramtrace import native

_hooks = []
_is_compiling = None


class Switch:
    off = False


NAMING = Switch()  # whatever gives names: one surprise, and none is given any more


def careful(function, switch=None):
    """An Exception turns the switch off, said in the trace; KeyboardInterrupt, SystemExit and their like
    pass."""
    switch = switch or Switch()

    @functools.wraps(function)
    def guarded(*arguments, **keywords):
        if switch.off:
            return None
        try:
            function(*arguments, **keywords)
        except Exception as error:
            switch.off = True
            native.feature("labels", False, f"{function.__name__}: {type(error).__name__}: {error}")
        return None

    return guarded


def hook(function):
    """A careful function for torch to call. torch.compile traces through the hooks of what it compiles as a
    whole: for the tracer this one is empty, so that the program's graph stays as it is."""
    inner = careful(function)

    def traceable(*arguments, **keywords):
        if not _is_compiling():
            inner(*arguments, **keywords)

    _hooks.extend((function, inner, traceable))
    return traceable


def check_broken():
    """VRAMTRACE_BREAK=labels: what any surprise in torch would be."""
    if native.made_to_fail("labels"):
        raise RuntimeError("made to fail by VRAMTRACE_BREAK")


def skip_in_dynamo(torch, *modules):
    """Dynamo does not compile the frames of our functions, nor the wrapper around Optimizer.step that calls
    them: it compiles what the wrapper calls, the step itself."""
    global _is_compiling
    compiler = getattr(torch, "compiler", None)
    _is_compiling = getattr(compiler, "is_compiling", None) or (lambda: False)  # since 2.1
    try:
        skip = torch._C._dynamo.eval_frame.skip_code
        constants = torch.optim.Optimizer.profile_hook_step.__code__.co_consts
    except AttributeError:
        return
    for code in constants:
        if getattr(code, "co_name", "") == "wrapper":
            skip(code)
    for function in _hooks:
        skip(function.__code__)
    for module in modules:
        for value in vars(module).values():
            for function in vars(value).values() if isinstance(value, type) else (value,):
                if hasattr(function, "__code__"):
                    skip(function.__code__)
