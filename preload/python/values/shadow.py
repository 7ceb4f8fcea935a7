"""The value shadow: where all tensors of an operation are small, the host computes the true bytes.

The device's own operation runs as ever, for its memory; its kernels do nothing. Before it, the operation of the
CPU runs on host tensors over the same bytes (host.py), and what it found is written into the device's memory
afterwards. Nothing is allocated on the device, so peaks and recorded events are those of a run without.

How it is called. Each operation gets a kernel at a dispatch key that nobody else has (below autograd, below
tensor subclasses and modes, above the backend), and the thread includes that key. No dispatch mode is active:
autograd and torch.compile take other paths where they see one, with other memory. Operations that PyTorch calls
from C++ come by here as well.
"""

import time

import torch
from _vramtrace.values import host, numbers, operations, policy
from _vramtrace.values.notes import Notes

# In the order of c10/core/DispatchKey.h: BackendSelect, Fake, Python. Python's enumeration leaves Fake out.
KEY_NAME = "Fake"
KEY = torch._C.DispatchKey(torch._C.DispatchKey.Python.value - 1)
BELOW = torch._C._dispatch_keyset_full_after(KEY)
ABOVE = torch._C._dispatch_keyset_full() - BELOW

MOST_FLOATS = 1 << 15  # up to here the CPU does not start its threads
MOST_INTEGERS = 1 << 20  # masks and indices decide shapes
MOST_MASK = 1 << 24  # of one that is known and counted
MOST_SUMMED = 1 << 22  # elements that are known and reduced to one
FAILURES = 3  # an operation that the host cannot do is left alone after as many

Tensor = torch.Tensor
Parameter = torch.nn.Parameter
Exclude = torch._C._ExcludeDispatchKeyGuard
Plain = torch._C.DisableTorchFunction
NUMBERS = frozenset(numbers.KINDS)
PYTHON = torch._C.DispatchKey.Python


class Shadow:
    def __init__(self, device):
        self.device = device
        self.policy = policy.Policy()
        self.notes = Notes(device)
        self.generator = torch.Generator(device="cpu")
        self.generator.manual_seed(0x5EED)
        self.seen = self.computed = self.nanoseconds = 0
        self.imposed = []  # how many the next nested nonzero finds
        self.quiet = 0  # reads of an operation's own

    def report(self):
        self.device.shadow_cost(self.seen, self.computed, self.nanoseconds)
        self.seen = self.computed = self.nanoseconds = 0

    # -- the host's side ----------------------------------------------------------------------------------

    def compute(self, operation, arguments, keywords):
        """(converted arguments, results of the host), None when the host cannot."""
        for i in operation.tensors:
            if i < len(arguments) and type(arguments[i]) in NUMBERS:
                arguments = numbers.with_tensors(arguments, operation.tensors)
                break
        made = host.Arguments(self.device, self.generator, operation.overwrites)
        written = operation.written
        values = [made.convert(value, i in written) for i, value in enumerate(arguments)]
        named = {name: made.convert(value, name in written) for name, value in keywords.items()}
        if operation.takes_generator:
            named["generator"] = self.generator
        # Small work: waking the CPU's threads costs more than it saves, and they are the program's.
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            if operation.random and not operation.takes_generator:
                return made, self._with_own_randomness(operation, values, named)
            return made, operation.on_host(*values, **named)
        finally:
            torch.set_num_threads(threads)

    def _with_own_randomness(self, operation, values, named):
        """The program's random numbers must not be drawn."""
        saved = torch.default_generator.get_state()
        torch.default_generator.set_state(self.generator.get_state())
        try:
            return operation.on_host(*values, **named)
        finally:
            self.generator.set_state(torch.default_generator.get_state())
            torch.default_generator.set_state(saved)

    def try_compute(self, operation, arguments, keywords):
        with Plain(), Exclude(ABOVE):
            try:
                return self.compute(operation, arguments, keywords)
            except Exception:
                return None, None

    def try_write(self, made, result, answer):
        with Plain(), Exclude(ABOVE):
            try:
                self.write(made, result, answer)
            except Exception:
                return False
        return True

    def expecting(self, number, known, forward, keys, arguments, keywords):
        """The device's operation, which reads a count from the device in its middle."""
        self.device.expect_count(number, known)
        self.quiet += 1
        try:
            return forward(keys, arguments, keywords)
        finally:
            self.quiet -= 1
            self.device.forget_counts()

    def write(self, made, result, answer):
        """The host's values into the device's tensors."""
        for tensor, value in made.written:
            self._put(tensor, value, made.known)
        if made.written:
            return
        for tensor, value in _pairs(answer, result):
            if not made.known and value.numel() == 1 and made.most > 1 and value.is_floating_point():
                value.fill_(self.policy.falling())  # a loss or a norm
            self._put(tensor, value, made.known)

    def _put(self, tensor, value, known):
        host.put(tensor, value if known else self.policy.finite(value), known, self.device)

    # -- a result that nobody knows -----------------------------------------------------------------------

    def knows(self, tensor, most):
        if type(tensor) not in (Tensor, Parameter) or not tensor.is_cuda or not 0 < tensor.numel() <= most:
            return False
        return self.device.knowledge(tensor.data_ptr(), host.extent(tensor)) == 1

    def reduce(self, single, answer, operation, arguments, keywords):
        """What a large operation made of one value: true where all that it read is known."""
        tensors = [value for value in arguments if isinstance(value, Tensor) and value.is_cuda]
        if not operation.written and tensors and all(self.knows(t, MOST_SUMMED) for t in tensors):
            made, result = self.try_compute(operation, arguments, keywords)
            if made is not None and made.known and self.try_write(made, result, answer):
                return
        self.invent(single, operation)

    def invent(self, tensor, operation):
        """A single value that a large operation should have computed: a loss, a norm, a flag."""
        if tensor.is_floating_point():
            value = self.policy.falling()
        elif operation.base == "all" and tensor.dtype is torch.bool:
            value = True
        else:
            return
        with Plain(), Exclude(ABOVE):
            try:
                target, _ = host.view(tensor, self.device)
                target.fill_(value)
                self.device.written(tensor.data_ptr(), host.extent(tensor), 0)
            except host.NotPossible:
                pass


def _pairs(answer, result):
    if isinstance(answer, Tensor):
        if isinstance(result, Tensor):
            yield answer, result
    elif isinstance(answer, (tuple, list)) and isinstance(result, (tuple, list)):
        for one, other in zip(answer, result):
            yield from _pairs(one, other)


def _is_foreign(tensor):
    """A tensor of a subclass with a dispatch of its own, which has stepped aside."""
    return torch._C._dispatch_keys(tensor).has(PYTHON)


SMALL, LARGE, ELSEWHERE = range(3)


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

    return alone if operation.name.removeprefix("aten::") in operations.ALONE else forward


def kernel_of(operation, shadow):
    """The kernel of one operation at our key."""
    forward = redispatcher(operation)
    special = SPECIAL.get(operation.base)
    failures = 0
    clock = time.perf_counter_ns

    def kernel(keys, *arguments, **keywords):
        nonlocal failures
        shadow.seen += 1
        size = size_of(arguments)
        if keywords and size != LARGE:
            named = size_of(keywords.values())
            size = named if size == ELSEWHERE or named == LARGE else size
        if size != SMALL or failures >= FAILURES:
            answer = forward(keys, arguments, keywords)
            if size == LARGE:
                single = answer[0] if type(answer) is tuple and answer else answer
                if type(single) is Tensor and single.numel() == 1 and single.is_cuda:
                    shadow.reduce(single, answer, operation, arguments, keywords)
            return answer
        started = clock()
        made, result = shadow.try_compute(operation, arguments, keywords)
        spent = clock() - started
        if made is None:
            failures += 1
            return forward(keys, arguments, keywords)
        failures = 0
        answer = forward(keys, arguments, keywords)
        started = clock()
        shadow.try_write(made, result, answer)
        shadow.computed += 1
        shadow.nanoseconds += spent + clock() - started
        return answer

    return special(operation, shadow, forward, kernel) if special is not None else kernel


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
                    policy.balanced(values, indices, arguments[2] if len(arguments) > 2 else -1)
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


def install(device):
    if KEY_NAME not in repr(torch._C.DispatchKeySet(KEY)):
        raise RuntimeError(
            f"the dispatch key below Python is {torch._C.DispatchKeySet(KEY)!r}, not {KEY_NAME}"
        )
    shadow = Shadow(device)
    everything = torch._C._dispatch_library("IMPL", "_", "", "vramtrace", 0)
    everything.fallback(KEY_NAME, torch.library.fallthrough_kernel, False)
    aten = torch._C._dispatch_library("IMPL", "aten", "", "vramtrace", 0)
    for operation in operations.chosen():
        aten.impl(operation.name.removeprefix("aten::"), KEY_NAME, kernel_of(operation, shadow), True)
    later = [_register_later(name, shadow) for name in operations.LATER]
    _let_through(torch)
    torch._C._dispatch_tls_set_dispatch_key_included(KEY, True)
    return shadow, (everything, aten, later)


def _register_later(name, shadow):
    """An operation of a library that is imported after torch: looked up at its first call."""
    namespace, base = name.split("::")
    made = []

    def kernel(keys, *arguments, **keywords):
        if not made:
            made.append(kernel_of(operations.Operation(name), shadow))
        return made[0](keys, *arguments, **keywords)

    library = torch._C._dispatch_library("IMPL", namespace, "", "vramtrace", 0)
    library.impl(base, KEY_NAME, kernel, True)
    return library


def _let_through(torch):
    """Higher-order operators look for a kernel at every key that is included."""
    from torch import _ops

    _ops._HIGHER_ORDER_OP_DEFAULT_FALLTHROUGH_DISPATCH_KEYS.append(KEY)
    for operator in _ops._higher_order_ops.values():
        operator.fallthrough(KEY)
