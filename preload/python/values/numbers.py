"""Numbers where the schema has a tensor, as C++ passes them: "wrapped", so that they decide less in type
promotion.

A dispatcher kernel in Python gets them as plain numbers. autograd keeps the wrapped one of a product that it
may have to differentiate; that is how to come by one."""

import torch

KINDS = (int, float, bool, complex)
MOST = 4096

_included = torch._C.DispatchKeySet(torch._C.DispatchKey.BackendSelect) | torch._C.DispatchKeySet(
    torch._C.DispatchKey.ADInplaceOrView
)
_excluded = torch._C._dispatch_keyset_full() - torch._C._dispatch_keyset_full()
_one = torch.ones((), device="cpu", requires_grad=True)
_made = {}


def wrapped(value):
    key = (type(value), value.hex() if type(value) is float else value)
    found = _made.get(key)
    if found is None:
        found = _wrap(value)
        if len(_made) >= MOST:
            _made.clear()
        _made[key] = found
    return found


def _wrap(value):
    with (
        torch._C._InferenceMode(False),
        torch._C._ForceDispatchKeyGuard(_included, _excluded),
        torch._C.DisableTorchFunction(),
        torch.enable_grad(),
    ):
        return torch.mul(_one, value).grad_fn._saved_other


def with_tensors(arguments, places):
    """The arguments, each number at one of the places wrapped."""
    changed = list(arguments)
    for i in places:
        if i < len(changed) and type(changed[i]) in KINDS:
            changed[i] = wrapped(changed[i])
    return changed
