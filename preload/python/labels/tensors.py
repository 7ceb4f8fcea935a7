"""Tensors as (storage address, bytes, device, dtype, shape), whatever their class."""

from _vramtrace import native

PARAMETER = 1
BUFFER = 2
GRADIENT = 3
OPTIMIZER_STATE = 4

_dtype_names = {}


def dtype_name(tensor):
    dtype = tensor.dtype
    name = _dtype_names.get(dtype)
    if name is None:
        name = _dtype_names[dtype] = str(dtype).replace("torch.", "")
    return name


def storages(tensor, depth=0):
    """The plain tensors that hold the bytes: a wrapper subclass (DTensor, quantized weights) names its inner
    ones, and since PyTorch 2.15 what else it is made of: DTensor its mesh."""
    flatten = getattr(type(tensor), "__tensor_flatten__", None)
    if flatten is not None and depth < 4:
        for attribute in tensor.__tensor_flatten__()[0]:
            inner = getattr(tensor, attribute)
            if hasattr(inner, "untyped_storage"):
                yield from storages(inner, depth + 1)
    else:
        yield tensor


def label(kind, tensor, name, state_key=""):
    """Labels the bytes of a tensor on a GPU; True if there were any."""
    found = False
    for plain in storages(tensor):
        if not plain.is_cuda:
            continue
        try:
            storage = plain.untyped_storage()
            address, size = storage.data_ptr(), storage.nbytes()
        except (RuntimeError, NotImplementedError):  # no storage of its own: sparse, fake, functional
            continue
        if address == 0 or size == 0:
            continue
        shape = tuple(plain.shape)
        native.label(kind, address, size, plain.get_device(), name, state_key, dtype_name(plain), shape)
        found = True
    return found
