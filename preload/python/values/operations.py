"""Which operations of PyTorch the shadow looks at: those with a kernel of their own for CUDA and for the CPU.

The rest stands on these. Views, memory without values and what only moves bytes are left alone."""

import torch
from _vramtrace.values.translated import NEEDED, TRANSLATED

# Operations without a kernel of their own whose parts cannot be computed one by one: cuDNN's, or a copy to or
# from the host.
ALSO = ("copy_", "convolution", "convolution_backward", "_coalesce", "_linalg_check_errors")
# Memory without values; values that differ between runs; questions about the device.
NEVER = frozenset(
    (
        "empty",
        "empty_strided",
        "resize_",
        "set_",
        "is_set_to",
        "record_stream",
        "is_pinned",
        "_pin_memory",
        "_cudnn_init_dropout_state",
        "_fused_dropout",
        "_nested_tensor_from_mask",
        "_assert_async",
        "_sparse_semi_structured_tile",
    )
)
OVERWRITING = frozenset(("fill_", "zero_", "copy_", "_foreach_zero_", "_foreach_copy_"))
# Of libraries that are imported after torch.
LATER = (
    "torchvision::nms",
    "torchvision::roi_align",
    "torchvision::roi_pool",
    "torchvision::ps_roi_align",
    "torchvision::deform_conv2d",
)


class Operation:
    """One overload, by its full name. Raises RuntimeError for one that nobody has defined."""

    def __init__(self, name):
        self.name = name
        base, _, overload = name.partition(".")
        found = torch._C._get_operation_overload(base, overload)
        self.call = found[0]
        self.on_host = TRANSLATED.get(name, self.call)
        self.needed = NEEDED.get(name)
        self.handle = torch._C._dispatch_find_schema_or_throw(base, overload)
        self.schema = torch._C._get_schema(base, overload)
        arguments = self.schema.arguments
        self.base = base.split("::")[1]
        self.random = torch.Tag.nondeterministic_seeded in found[2]
        self.written = frozenset(
            argument.name if argument.kwarg_only else i
            for i, argument in enumerate(arguments)
            if argument.alias_info is not None and argument.alias_info.is_write
        )
        self.tensors = tuple(
            i for i, argument in enumerate(arguments) if str(argument.type) in ("Tensor", "Optional[Tensor]")
        )
        # What is overwritten whole need not have been known.
        self.overwrites = (
            self.random or self.base in OVERWRITING or any(isinstance(name, str) for name in self.written)
        )
        self.takes_generator = any(argument.name == "generator" for argument in arguments)

    @property
    def is_view(self):
        return any(
            answer.alias_info is not None and not answer.alias_info.is_write for answer in self.schema.returns
        )


def chosen():
    """The operations of aten that are shadowed."""
    names = [
        name
        for name in torch._C._dispatch_get_all_op_names()
        if name.startswith("aten::")
        and torch._C._dispatch_has_kernel_for_dispatch_key(name, "CUDA")
        and torch._C._dispatch_has_computed_kernel_for_dispatch_key(name, "CPU")
    ]
    for name in dict.fromkeys((*names, *TRANSLATED, *("aten::" + name for name in ALSO))):
        try:
            operation = Operation(name)
        except RuntimeError:  # not in this PyTorch
            continue
        if operation.base not in NEVER and not operation.is_view:
            yield operation
