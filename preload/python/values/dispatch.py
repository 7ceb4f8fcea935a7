"""The dispatch key of our kernels, and what decides whether an operation is shadowed."""

import torch
from _vramtrace.values import numbers

# Beside Python in c10/core/DispatchKey.h: below it in newer releases, above it in 2.11 and before. Python's
# enumeration leaves it out.
KEY_NAME = "Fake"


def _key_beside_python():
    place = torch._C.DispatchKey.Python.value
    for key in (torch._C.DispatchKey(place - 1), torch._C.DispatchKey(place + 1)):
        if KEY_NAME in repr(torch._C.DispatchKeySet(key)):
            return key
    raise RuntimeError(f"no dispatch key beside Python is {KEY_NAME}")


KEY = _key_beside_python()
# Modes and subclasses come after us then: what a mode handles is passed on.
MODES_BELOW = KEY.value > torch._C.DispatchKey.Python.value
modes_active = torch._C._len_torch_dispatch_stack
BELOW = torch._C._dispatch_keyset_full_after(KEY)
ABOVE = torch._C._dispatch_keyset_full() - BELOW

MOST_FLOATS = 1 << 15  # up to here the CPU does not start its threads
MOST_INTEGERS = 1 << 20  # masks and indices decide shapes
MOST_MASK = 1 << 24  # of one that is known and counted
MOST_SUMMED = 1 << 22  # elements that are known and reduced to one
# They pass a wrapped number of the device on, which no Python object can stand for: what they call is not
# seen.
ALONE = frozenset(("pow.Scalar", "pow.Scalar_out", "isin.Scalar_Tensor", "isin.Scalar_Tensor_out"))
FAILURES = 3  # an operation that the host cannot do is left alone after as many

Tensor = torch.Tensor
Parameter = torch.nn.Parameter
Exclude = torch._C._ExcludeDispatchKeyGuard
Plain = torch._C.DisableTorchFunction
NUMBERS = frozenset(numbers.KINDS)
PYTHON = torch._C.DispatchKey.Python

SMALL, LARGE, ELSEWHERE = range(3)


def _is_foreign(tensor):
    """A tensor of a subclass with a dispatch of its own, which has stepped aside."""
    return torch._C._dispatch_keys(tensor).has(PYTHON)


def size_of(values):
    """Are all tensors small, and is one of them the device's."""
    found = ELSEWHERE
    for value in values:
        kind = type(value)
        if kind is Tensor or kind is Parameter:
            pass
        elif kind is list or kind is tuple:
            if value and type(value[0]) not in NUMBERS:
                inner = size_of(value)
                if inner == LARGE:
                    return LARGE
                if inner == SMALL:
                    found = SMALL
            continue
        elif isinstance(value, Tensor):
            if _is_foreign(value):
                return ELSEWHERE
        else:
            continue
        count = value.numel()
        if count > MOST_FLOATS and (count > MOST_INTEGERS or value.is_floating_point() or value.is_complex()):
            return LARGE if value.is_cuda or found == SMALL else ELSEWHERE
        if value.is_cuda:
            found = SMALL
    return found


def redispatcher(operation):
    """Calls the backend's own kernel."""
    redispatch, places = operation.handle.redispatch_boxed, operation.tensors

    def forward(keys, arguments, keywords):
        for i in places:
            if i < len(arguments) and type(arguments[i]) in NUMBERS:
                arguments = numbers.with_tensors(arguments, places)
                break
        return redispatch(keys & BELOW, *arguments, **keywords)

    def alone(keys, arguments, keywords):
        with Exclude(ABOVE):
            return forward(keys, arguments, keywords)

    return alone if operation.name.removeprefix("aten::") in ALONE else forward
