"""What the native side asks for, run on the main thread between two of the program's byte codes."""

import atexit
import sys

from _vramtrace import native

from .guard import NAMING, careful
from .tensors import dtype_name

MODULES = 1
INPUTS = 2
OUT_OF_MEMORY = 4


class Requests:
    def __init__(self, torch, registry, labeller):
        self.torch = torch
        self.registry = registry
        self.labeller = labeller
        self.call_code = torch.nn.Module._wrapped_call_impl.__code__

    def run(self):
        bits = native.take_requests()
        call = self.outermost_call(sys._getframe(1))
        if call is not None:
            self.registry.add_root(call["self"])
        if bits & (MODULES | OUT_OF_MEMORY):
            self.add_known_roots()
            self.labeller.label_everything(search=bool(bits & OUT_OF_MEMORY))
        if bits & INPUTS:
            if call is None:
                native.expect_inputs()
            else:
                self.record_inputs(call)

    def outermost_call(self, frame):
        """Locals of the outermost running Module.__call__: self, args, kwargs."""
        found = None
        while frame is not None:
            if frame.f_code is self.call_code:
                found = frame
            frame = frame.f_back
        return None if found is None else found.f_locals

    def add_known_roots(self):
        """Everything that has registered a parameter: a model that was never called is still there."""
        for reference, _ in list(self.registry.owners.values()):
            module = reference()
            if module is not None:
                self.registry.add_root(module)

    # ---------------------------------------------------------------------------------------------- inputs

    def record_inputs(self, call):
        module = call["self"]
        with self.torch._C.DisableTorchFunction():
            names = positional_names(module)
            for index, value in enumerate(call["args"]):
                self.record_input(names.get(index, f"args[{index}]"), value, module, 0)
            for name, value in call["kwargs"].items():
                self.record_input(name, value, module, 0)

    def record_input(self, name, value, module, depth):
        if isinstance(value, self.torch.Tensor):
            try:
                storage = value.untyped_storage()
                address, size = storage.data_ptr(), storage.nbytes()
            except (RuntimeError, NotImplementedError):
                address = size = 0
            shape = tuple(value.shape)
            step = self.labeller.counter.training()
            native.input(name, address, size, dtype_name(value), shape, step, value.is_cuda, id(module))
        elif depth < 3 and isinstance(value, dict):
            for key, element in value.items():
                self.record_input(f"{name}[{key}]", element, module, depth + 1)
        elif depth < 3 and isinstance(value, (list, tuple)):
            for index, element in enumerate(value):
                self.record_input(f"{name}[{index}]", element, module, depth + 1)


def positional_names(module):
    """Position -> parameter name of the module's forward."""
    code = getattr(type(module).forward, "__code__", None)
    if code is None:
        return {}
    return dict(enumerate(code.co_varnames[1 : code.co_argcount]))


def at_exit():
    native.query_at_exit()


def install(torch, registry, labeller):
    native.set_callback(careful(Requests(torch, registry, labeller).run, NAMING))
    atexit.register(careful(at_exit))
