"""Tells the native side that torch is complete, and checks what it believes of torch's internals.

The checks use one tiny graph on the CPU and one empty module: no GPU is touched (a backward would ask for the
number of devices, so none is run) and no random number is drawn.
"""

from _vramtrace import native


def install(torch):
    native.torch_ready(str(torch.__version__))
    check_module_frames(torch)
    check_autograd(torch)


def check_module_frames(torch):
    """`self` of torch.nn.Module._wrapped_call_impl, read from its frame, must be the module."""
    wrapped = getattr(torch.nn.Module, "_wrapped_call_impl", None)  # since 2.1
    if wrapped is None:
        return
    native.set_module_code(wrapped.__code__)

    class Probe(torch.nn.Module):
        def forward(self):
            return native.current_module()

    probe = Probe()
    if probe() != id(probe):
        native.set_module_code(None)


def check_autograd(torch):
    """The native side reads the nodes' fields and compares them with what Python says."""
    try:
        with torch.enable_grad():
            leaf = torch.zeros(1, device="cpu", requires_grad=True)
            first = leaf.view(1).grad_fn
            second = leaf.t().grad_fn
    except Exception as error:
        native.feature("autograd_node", False, f"no graph to check against: {error}")
        return
    native.verify_nodes(
        *(first, first._sequence_nr(), first.name()),
        *(second, second._sequence_nr(), second.name()),
    )
