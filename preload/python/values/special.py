"""Operations that need more than their values: what the host reads, and counts that decide shapes."""

import torch
from _vramtrace.values import host
from _vramtrace.values.dispatch import (
    ABOVE,
    ELSEWHERE,
    MOST_INTEGERS,
    MOST_MASK,
    SMALL,
    Exclude,
    Parameter,
    Plain,
    Tensor,
    size_of,
)
from _vramtrace.values.policy import balanced


def reading(operation, shadow, forward, kernel):
    """item(): the host reads one value."""

    def read(keys, *arguments, **keywords):
        tensor = arguments[0]
        plain = type(tensor) in (Tensor, Parameter) and tensor.is_cuda and tensor.numel() == 1
        if plain and not shadow.quiet:
            note_read(shadow, tensor)
        return forward(keys, arguments, keywords)

    return read


def note_read(shadow, tensor):
    if tensor.numel() == 0 or shadow.device.knowledge(tensor.data_ptr(), host.extent(tensor)) != 0:
        return
    name = str(tensor.dtype).removeprefix("torch.")
    if tensor.numel() > 1:
        shadow.notes.read(f"{tensor.numel():,} values of {name}", "value")
        return
    if tensor.is_floating_point():
        with Plain(), Exclude(ABOVE):
            value, _ = host.view(tensor, shadow.device)
            if not value.any():
                shadow.invent(tensor, None)
        shadow.policy.reads += 1
        shadow.notes.read(f"a value of {name}", "value")
    else:
        shadow.notes.read(f"a value of {name}", "branch" if tensor.dtype is torch.bool else "shape")


def copying(operation, shadow, forward, kernel):
    """copy_: to the host it is a read; a copy that converts is an operation like any other."""

    def copy(keys, *arguments, **keywords):
        target, source = arguments[0], arguments[1]
        if type(source) not in (Tensor, Parameter) or not source.is_cuda or target.device.type != "cpu":
            return kernel(keys, *arguments, **keywords)
        note_read(shadow, source)
        answer = forward(keys, arguments, keywords)
        if source.numel() <= MOST_INTEGERS and type(target) in (Tensor, Parameter):
            with Plain(), Exclude(ABOVE):
                try:
                    target.copy_(host.view(source, shadow.device)[0])
                except (host.NotPossible, RuntimeError):
                    pass
        return answer

    return copy


def counting(operation, shadow, forward, kernel):
    """How many there are decides the shape: the library reads it from the device in the middle."""

    def count(keys, *arguments, **keywords):
        tensor = arguments[0]
        size = size_of(arguments)
        if size == ELSEWHERE:
            return forward(keys, arguments, keywords)
        made, result = None, None
        if size == SMALL or shadow.knows(tensor, MOST_MASK):
            made, result = shadow.try_compute(operation, arguments, keywords)
        known = made is not None and made.known
        if shadow.imposed:
            number, known, made = shadow.imposed.pop(), True, None
        elif made is not None:
            number = (result[0] if isinstance(result, tuple) else result).size(0)
        else:
            number = shadow.policy.count(tensor.numel())
        if not known and not shadow.quiet:
            shadow.notes.read(f"{operation.base}: {number:,} of {tensor.numel():,}", "shape")
        answer = shadow.expecting(number, known, forward, keys, arguments, keywords)
        if made is not None:
            shadow.try_write(made, result, answer)
        return answer

    return count


def coalescing(operation, shadow, forward, kernel):
    """_coalesce: how many indices differ decides the shape."""

    def coalesce(keys, *arguments, **keywords):
        tensor = arguments[0]
        if type(tensor) is not Tensor or not tensor.is_cuda:
            return forward(keys, arguments, keywords)
        with Plain(), Exclude(ABOVE):
            try:
                (indices, known), (values, _) = (
                    host.view(part, shadow.device) for part in (tensor._indices(), tensor._values())
                )
                if indices.numel() > MOST_INTEGERS:
                    raise host.NotPossible
                made = torch.sparse_coo_tensor(indices, values, tensor.size(), check_invariants=False)
                made = made.coalesce() if known else None
            except (host.NotPossible, RuntimeError):
                made = None
        number = shadow.policy.count(tensor._nnz()) if made is None else made._nnz()
        if made is None:
            shadow.notes.read(f"coalesce: {number:,} of {tensor._nnz():,}", "shape")
        answer = shadow.expecting(number, made is not None, forward, keys, arguments, keywords)
        if made is not None:
            with Plain(), Exclude(ABOVE):
                for target, value in (
                    (answer._indices(), made._indices()),
                    (answer._values(), made._values()),
                ):
                    host.put(target, value, True, shadow.device)
        return answer

    return coalesce


def comparing(operation, shadow, forward, kernel):
    """equal: its answer is read from the device; what nobody knows is equal."""

    def compare(keys, *arguments, **keywords):
        made, result = None, True
        size = size_of(arguments)
        if size == ELSEWHERE:
            return forward(keys, arguments, keywords)
        if size == SMALL:
            made, result = shadow.try_compute(operation, arguments, keywords)
        known = made is not None and made.known
        if not known:
            shadow.notes.read("equal", "branch")
        return shadow.expecting(int(result or not known), known, forward, keys, arguments, keywords)

    return compare


def suppressing(operation, shadow, forward, kernel):
    """torchvision's nms marks what it keeps with a kernel and counts the marks."""

    def suppress(keys, *arguments, **keywords):
        if size_of(arguments) != SMALL:
            return forward(keys, arguments, keywords)
        made, result = shadow.try_compute(operation, arguments, keywords)
        if made is None:
            return forward(keys, arguments, keywords)
        shadow.imposed.append(result.numel())
        try:
            answer = forward(keys, arguments, keywords)
        finally:
            shadow.imposed.clear()
        shadow.try_write(made, result, answer)
        return answer

    return suppress


def checking(operation, shadow, forward, kernel):
    """GradScaler's look at the gradients: those that nobody knows are finite, or no step would be made."""

    def check(keys, *arguments, **keywords):
        made = None
        if size_of(arguments) == SMALL:
            made, result = shadow.try_compute(operation, arguments, keywords)
        answer = forward(keys, arguments, keywords)
        if made is not None and made.known:
            shadow.try_write(made, result, answer)
        return answer

    return check


def reporting(operation, shadow, forward, kernel):
    """A library's own check of its status, which it has answered."""

    def report(keys, *arguments, **keywords):
        shadow.quiet += 1
        try:
            return forward(keys, arguments, keywords)
        finally:
            shadow.quiet -= 1

    return report


def choosing(operation, shadow, forward, kernel):
    """topk over values that nobody knows chooses experts: balanced."""

    def choose(keys, *arguments, **keywords):
        answer = kernel(keys, *arguments, **keywords)
        tensor = arguments[0]
        if type(answer) is not tuple or not answer[1].is_cuda or answer[1].numel() > MOST_INTEGERS:
            return answer
        with Plain(), Exclude(ABOVE):
            try:
                values, known = host.view(tensor, shadow.device)
                if not known and (values == values.flatten()[0]).all():
                    indices, _ = host.view(answer[1], shadow.device)
                    balanced(values, indices, arguments[2] if len(arguments) > 2 else -1)
                    shadow.device.written(answer[1].data_ptr(), host.extent(answer[1]), 0)
            except (host.NotPossible, IndexError, RuntimeError):
                pass
        return answer

    return choose


SPECIAL = {
    "_local_scalar_dense": reading,
    "copy_": copying,
    "nonzero": counting,
    "_unique2": counting,
    "unique_dim": counting,
    "unique_consecutive": counting,
    "unique_dim_consecutive": counting,
    "topk": choosing,
    "_coalesce": coalescing,
    "equal": comparing,
    "_amp_foreach_non_finite_check_and_unscale_": checking,
    "_linalg_check_errors": reporting,
    "nms": suppressing,
}
