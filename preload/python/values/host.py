"""Host tensors over the device's memory: the same bytes, so that an operation of the CPU reads and writes
what the device's would."""

import torch

_CPU = torch.device("cpu")
_storage = torch._C._construct_storage_from_data_pointer


class NotPossible(Exception):
    """A tensor whose bytes cannot be looked at: not live, or of a layout without plain memory."""


def extent(tensor):
    """Bytes from a tensor's first element to its last."""
    last = 0
    for size, stride in zip(tensor.size(), tensor.stride()):
        last += (size - 1) * stride
    return (last + 1) * tensor.element_size()


def view(tensor, device):
    """(host tensor over the same bytes, are they known)."""
    if tensor.layout is not torch.strided or tensor.is_conj() or tensor.is_neg():
        raise NotPossible
    size, stride = tensor.size(), tensor.stride()
    if tensor.numel() == 0:
        return torch.empty_strided(size, stride, dtype=tensor.dtype, device=_CPU), True
    address, bytes_ = tensor.data_ptr(), extent(tensor)
    known = device.knowledge(address, bytes_)
    if known < 0 or not device.open(address, bytes_):
        raise NotPossible
    made = torch.empty(0, dtype=tensor.dtype, device=_CPU)
    return made.set_(_storage(address, _CPU, bytes_), 0, size, stride), known == 1


class Arguments:
    """The host's arguments of one call. Those that the operation writes are copies, so that the device's own
    operation still finds what it reads."""

    def __init__(self, device, generator, overwrites=False):
        self.device = device
        self.overwrites = overwrites
        self.generator = generator
        self.known = True
        self.most = 0  # elements of the largest tensor of the device
        self.written = []  # (device tensor, host copy)
        self._made = {}

    def convert(self, value, writes=False):
        if isinstance(value, torch.Tensor):
            return self._tensor(value, writes)
        if type(value) in (list, tuple):
            return [self.convert(item, writes) for item in value]
        if isinstance(value, torch.device):
            return _CPU
        if isinstance(value, torch.Generator):
            return self.generator
        return value

    def _tensor(self, tensor, writes):
        key = id(tensor)
        if key in self._made:
            return self._made[key]
        if not tensor.is_cuda:
            if tensor.device.type != "cpu":
                raise NotPossible
            made = tensor.clone() if writes else tensor
            if writes:
                raise NotPossible
        else:
            made, known = view(tensor, self.device)
            self.most = max(self.most, tensor.numel())
            self.known = self.known and (known or (writes and self.overwrites))
            if writes:
                copied = torch.empty_strided(made.size(), made.stride(), dtype=made.dtype, device=_CPU)
                if 0 in made.stride():
                    raise NotPossible
                copied.copy_(made)
                made = copied
                self.written.append((tensor, made))
        self._made[key] = made
        return made


def put(tensor, value, known, device):
    """Writes a host tensor's values where a device tensor has its bytes."""
    if not tensor.is_cuda or tensor.shape != value.shape or tensor.numel() == 0:
        return
    target, _ = view(tensor, device)
    target.copy_(value)
    device.written(tensor.data_ptr(), extent(tensor), known)
