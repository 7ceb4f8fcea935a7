"""Runs our modules once torch is complete.

Executed by the audit hook (python_host.cpp) when the program first imports torch, before the import system
looks for it. A finder in front of sys.meta_path wraps the loader that the program's own finders name; when
that loader has executed torch, every trace of the finder is gone and the modules named in ON_TORCH are run.
"""

import os
import sys

# Packages whose install(torch) is called, in this order, and the environment variable that must be set.
ON_TORCH = (
    ("internals", None),
    ("labels", None),
    ("values", None),
    ("techniques", "VRAMTRACE_APPLY"),
    ("dry_run", "VRAMTRACE_DRY_RUN_STEPS"),
)

native = None
sources = None


class EmbeddedLoader:
    """Executes our embedded sources; tracebacks show their lines through get_source()."""

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        path, text = find_source(module.__name__)
        code = compile(text, "<vramtrace>/" + path, "exec", dont_inherit=True)
        hide(code)
        exec(code, module.__dict__)

    def get_source(self, name):
        return find_source(name)[1]


class EmbeddedFinder:
    """Finds _vramtrace.* and nothing else."""

    loader = EmbeddedLoader()

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if not name.startswith("_vramtrace"):
            return None
        from importlib.machinery import ModuleSpec

        file, _ = find_source(name)
        if file is None:
            return None
        spec = ModuleSpec(name, cls.loader, origin="<vramtrace>/" + file)
        spec.has_location = False
        if file.endswith("__init__.py"):
            spec.submodule_search_locations = []
        return spec


def find_source(name):
    """(path, text) of a module's embedded file, (None, None) if there is none."""
    stem = "/".join(name.split(".")[1:])
    for path in (stem + "/__init__.py" if stem else "__init__.py", stem + ".py"):
        if path in sources:
            return path, sources[path]
    return None, None


def hide(code):
    """Our frames never appear in a recorded stack."""
    kept.append(code)
    native.hide_code(code)
    for constant in code.co_consts:
        if hasattr(constant, "co_consts"):
            hide(constant)


kept = []


class TorchLoader:
    """The program's loader of torch, with a step behind exec_module."""

    def __init__(self, loader, finder):
        self._loader = loader
        self._finder = finder

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        try:
            self._loader.exec_module(module)
        except BaseException:
            sys.meta_path.insert(0, self._finder)  # a program may try again
            raise
        run_modules(module)

    def __getattr__(self, name):
        return getattr(self._loader, name)


class TorchFinder:
    """In front of sys.meta_path until torch has been found."""

    def find_spec(self, name, path=None, target=None):
        if name != "torch" or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        import importlib.util

        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        spec.loader = TorchLoader(spec.loader, self)
        return spec


def run_modules(torch):
    """Installs what belongs to a complete torch. Nothing of ours may ever fail the program's import."""
    sys.meta_path.append(EmbeddedFinder)
    try:
        for name, variable in ON_TORCH:
            if variable is None or os.environ.get(variable):
                install(name, torch)
    finally:
        sys.meta_path.remove(EmbeddedFinder)


def install(name, torch):
    import importlib

    try:
        importlib.import_module("_vramtrace." + name).install(torch)
    except Exception as error:
        native.feature(name, False, f"{type(error).__name__}: {error}")
        if os.environ.get("VRAMTRACE_DEBUG"):
            raise


def wait_for(torch):
    """torch is already being imported (importlib.import_module raises no audit event): looks again at every
    import, and at the first allocation, until it is complete."""

    def look():
        native.take_requests()
        if not getattr(torch.__spec__, "_initializing", False):
            native.wait_for_torch(False)
            run_modules(torch)

    native.set_callback(look)
    native.wait_for_torch(True)


def start(native_module, embedded, own_code, own_module):
    global native, sources
    native, sources = native_module, embedded
    hide(own_code)
    sys.modules["_vramtrace.native"] = native_module
    sys.modules["_vramtrace.import_finder"] = own_module
    torch = sys.modules.get("torch")
    if torch is None:
        sys.meta_path.insert(0, TorchFinder())
    else:
        wait_for(torch)
