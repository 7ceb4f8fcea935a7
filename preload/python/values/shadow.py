"""The value shadow: where all tensors of an operation are small, the host computes the true bytes.

The device's own operation runs as ever, for its memory; its kernels do nothing. Before it, the operation of
the CPU runs on host tensors over the same bytes (host.py), and what it found is written into the device's
memory afterwards. Nothing is allocated on the device, so peaks and recorded events are those of a run
without.

How it is called. Each operation gets a kernel at a dispatch key that nobody else has (below autograd, below
tensor subclasses and modes, above the backend), and the thread includes that key. No dispatch mode is active:
autograd and torch.compile take other paths where they see one, with other memory. Operations that PyTorch
calls from C++ come by here as well.
"""

import time

import torch
from _vramtrace.values import host, numbers, operations, policy
from _vramtrace.values.dispatch import (
    ABOVE,
    ELSEWHERE,
    FAILURES,
    KEY,
    KEY_NAME,
    LARGE,
    MODES_BELOW,
    MOST_SUMMED,
    NUMBERS,
    SMALL,
    Exclude,
    Parameter,
    Plain,
    Tensor,
    modes_active,
    redispatcher,
    size_of,
)
from _vramtrace.values.notes import Notes
from _vramtrace.values.special import SPECIAL


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
        needed = operation.needed
        values = [
            made.convert(value, i in written) if needed is None or i in needed else value
            for i, value in enumerate(arguments)
        ]
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

    whole = special(operation, shadow, forward, kernel) if special is not None else kernel
    return _without_modes(whole, forward) if MODES_BELOW else whole


def _without_modes(kernel, forward):
    def kernel_or_mode(keys, *arguments, **keywords):
        if modes_active():
            return forward(keys, arguments, keywords)
        return kernel(keys, *arguments, **keywords)

    return kernel_or_mode


def install(device):
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
