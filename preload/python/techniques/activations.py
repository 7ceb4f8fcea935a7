"""What forward keeps for backward: on the host, or less of it."""

import functools

from .refusal import number, refuse

LEAST_BYTES = 1 << 20  # smaller tensors are not worth their way


def activation_offload(scene, options):
    """Saved tensors wait on the host. Parameters and small tensors stay where they are."""
    torch = scene.torch

    def change(root):
        forward = root.forward

        @functools.wraps(forward)
        def offloaded(*arguments, **keywords):
            if not torch.is_grad_enabled():
                return forward(*arguments, **keywords)
            own = {p.untyped_storage().data_ptr() for p in root.parameters()}

            def pack(tensor):
                small = tensor.numel() * tensor.element_size() < LEAST_BYTES
                if small or not tensor.is_cuda or tensor.untyped_storage().data_ptr() in own:
                    return None, tensor
                return tensor.device, tensor.to("cpu")

            def unpack(packed):
                device, tensor = packed
                return tensor if device is None else tensor.to(device)

            with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
                return forward(*arguments, **keywords)

        root.forward = offloaded

    scene.model(change)


def sequence_length(scene, options):
    """Inputs are cut. Half of the first batch's length where none is named."""
    torch = scene.torch
    length = number(options, "length", 0) if "length" in options else 0

    def cut(arguments, keywords):
        tensors = [v for v in (*arguments, *keywords.values()) if isinstance(v, torch.Tensor) and v.dim() > 1]
        tokens = next((t for t in tensors if t.dim() == 2 and not t.is_floating_point()), None)
        if tokens is None:
            refuse("sequence-length", "the model's inputs hold no rows of tokens")
        if "labels" not in keywords:
            refuse("sequence-length", "the program computes its loss itself, from labels of the full length")
        full = tokens.shape[1]
        kept = length or full // 2

        def shorter(value):
            if isinstance(value, torch.Tensor) and value.dim() > 1 and value.shape[1] == full:
                return value[:, :kept]
            return value

        return [shorter(a) for a in arguments], {k: shorter(v) for k, v in keywords.items()}

    scene.on_forward.append(cut)
