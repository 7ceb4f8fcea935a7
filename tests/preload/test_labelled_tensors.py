"""Which tensors hold the bytes of a wrapper, without PyTorch: the attributes are all that is asked for."""

import importlib
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

PYTHON = Path(__file__).resolve().parents[2] / "preload" / "python"


class Plain:
    def untyped_storage(self) -> None:
        raise AssertionError("nobody asked for the bytes")


class Wrapper:
    """As DTensor is: a tensor inside, and a mesh, which is none."""

    def __init__(self, inner: object) -> None:
        self._local_tensor = inner
        self.device_mesh = object()

    def __tensor_flatten__(self) -> tuple[list[str], None]:
        return ["_local_tensor", "device_mesh"], None

    def untyped_storage(self) -> None:
        raise AssertionError("a wrapper has no bytes of its own")


@pytest.fixture
def tensors(monkeypatch: pytest.MonkeyPatch) -> Iterator[types.ModuleType]:
    native = types.ModuleType("_vramtrace")
    native.native = types.SimpleNamespace()
    monkeypatch.setitem(sys.modules, "_vramtrace", native)
    monkeypatch.syspath_prepend(str(PYTHON / "labels"))
    module = importlib.import_module("tensors")
    yield module
    sys.modules.pop("tensors")


def test_what_is_no_tensor_is_left_out(tensors: types.ModuleType) -> None:
    inner = Plain()
    assert list(tensors.storages(Wrapper(Wrapper(inner)))) == [inner]
    assert list(tensors.storages(inner)) == [inner]
