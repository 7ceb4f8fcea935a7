"""Which modules there are, how they hang together, and what their parameters and buffers are called.

Learned from registration hooks as a model is built, from the modules that are called (requests.py), and, for
models that were built without registering anything (copy.deepcopy, torch.load of a whole module), from one
walk over the garbage collector's objects. Modules are held by weak references; tensors are not held at all,
not even weakly: torch.utils.swap_tensors refuses a tensor that has a weak reference."""

import gc
import sys
import weakref

from _vramtrace import native

from .guard import hook

MAX_DEPTH = 64
MAX_PARENTS = 4  # that a module had, besides the newest
# Attributes under which a wrapper holds the module it wraps: no part of the name that a user knows.
WRAPPERS = {
    "_orig_mod": None,
    "_fsdp_wrapped_module": None,
    "_checkpoint_wrapped_module": None,
    "module": ("DistributedDataParallel", "DataParallel"),
}


class Registry:
    def __init__(self, torch):
        self.torch = torch
        self.module_type = torch.nn.Module
        self.parents = {}  # id(child) -> [(ref(parent), key, ref(child))], the oldest first
        self.owners = {}  # id(parameter) -> (ref(module), key)
        self.roots = {}  # id(root) -> (ref(root), prefix of its names)
        self.named = {}  # id(module) -> (ref(module), path)
        self.walked = False

    def install(self):
        module = sys.modules["torch.nn.modules.module"]
        for name, callback in (
            ("register_module_module_registration_hook", hook(self.on_module)),
            ("register_module_parameter_registration_hook", hook(self.on_parameter)),
        ):
            register = getattr(module, name, None)  # since 2.0
            if register is not None:
                register(callback)

    def on_module(self, parent, key, child):
        if child is not None:
            entries = self.parents.get(id(child), ())
            known = [e for e in entries if e[2]() is child and e[0]() is not None]
            self.parents[id(child)] = [*known[:MAX_PARENTS], (weakref.ref(parent), key, weakref.ref(child))]

    def on_parameter(self, module, key, parameter):
        if parameter is not None:
            self.owners[id(parameter)] = (weakref.ref(module), key)

    # ------------------------------------------------------------------------------------------- structure

    def parent_of(self, module):
        """The module that holds this one, if one still does. The oldest: a slice of a ModuleList is a new
        list, gone with the expression that made it."""
        for holder, key, child in self.parents.get(id(module), ()):
            parent = holder()
            if child() is module and parent is not None and children_of(parent).get(key) is module:
                return parent
        return None

    def add_root(self, module):
        """Notes the outermost module that holds this one, and returns it."""
        for _ in range(MAX_DEPTH):
            parent = self.parent_of(module)
            if parent is None:
                break
            module = parent
        if id(module) not in self.roots or self.roots[id(module)][0]() is not module:
            self.roots[id(module)] = (weakref.ref(module), None)
        return module

    def add_owner(self, parameter):
        """Finds the root of a parameter that was registered; False if nobody is known to hold it."""
        entry = self.owners.get(id(parameter))
        module = entry[0]() if entry is not None else None
        if module is None or parameters_of(module).get(entry[1]) is not parameter:
            return False
        self.add_root(module)
        return True

    def live_roots(self):
        """[(module, prefix)], without those that have become part of another, or are gone."""
        living = []
        for key, (reference, prefix) in list(self.roots.items()):
            module = reference()
            if module is None or self.parent_of(module) is not None:
                del self.roots[key]
                if module is not None:
                    self.add_root(module)
            else:
                living.append((module, prefix))
        missing = {id(module) for module, _ in living}
        living += [(r(), p) for k, (r, p) in self.roots.items() if k not in missing and r() is not None]
        return [self._with_prefix(module, prefix) for module, prefix in living]

    def _with_prefix(self, module, prefix):
        """The first root's names stand alone, as its state_dict has them; further ones begin with their
        class."""
        if prefix is None and has_parameters(module):
            taken = {p for r, p in self.roots.values() if p is not None and r() is not None}
            name, prefix, count = type(module).__name__, "", 1
            while prefix in taken:
                prefix = name if count == 1 else f"{name}#{count}"
                count += 1
            self.roots[id(module)] = (weakref.ref(module), prefix)
        return module, prefix or ""

    def walk_objects(self):
        """Once: every module in the process, found by its class. Nothing of the objects is called."""
        if self.walked:
            return
        self.walked = True
        modules = [o for o in gc.get_objects() if self.module_type in type(o).__mro__]
        held = {}
        for module in modules:
            for key, child in children_of(module).items():
                if child is not None:
                    held[id(child)] = True
                    if self.parent_of(child) is None:
                        self.on_module(module, key, child)
        for module in modules:
            if id(module) not in held and has_parameters(module):
                self.add_root(module)

    # ------------------------------------------------------------------------------------------------ names

    def name_modules(self):
        """Writes a Module packet for every module that has none, or another name by now."""
        for root, prefix in self.live_roots():
            for module, path, parent in walk(root, prefix):
                self._name(module, path, parent)

    def _name(self, module, path, parent):
        key = id(module)
        entry = self.named.get(key)
        if entry is not None and entry[0]() is module and entry[1] == path:
            return

        def gone(_, key=key, named=self.named):
            named.pop(key, None)
            native.forget(key)

        self.named[key] = (weakref.ref(module, gone), path)
        native.module(key, 0 if parent is None else id(parent), path, type(module).__name__)

    def parameters(self):
        """[(name, parameter)] of all roots, in the order of named_parameters(); tied ones once a name."""
        return [
            (join(path, key), p)
            for module, path in self._modules()
            for key, p in parameters_of(module).items()
            if p is not None
        ]

    def buffers(self):
        return [
            (join(path, key), b)
            for module, path in self._modules()
            for key, b in buffers_of(module).items()
            if b is not None
        ]

    def _modules(self):
        return [(m, path) for root, prefix in self.live_roots() for m, path, _ in walk(root, prefix)]


def children_of(module):
    return module.__dict__.get("_modules") or {}


def parameters_of(module):
    return module.__dict__.get("_parameters") or {}


def buffers_of(module):
    return module.__dict__.get("_buffers") or {}


def join(path, key):
    return path + "." + key if path else key


def has_parameters(module):
    return any(p is not None for m, _, _ in walk(module, "") for p in parameters_of(m).values())


def step_into(module, path, key):
    """The path of a child; a wrapper's own attribute is left out."""
    if key in WRAPPERS and (WRAPPERS[key] is None or type(module).__name__ in WRAPPERS[key]):
        return path
    return join(path, key)


def walk(root, path):
    """(module, path, parent), each module once, a parent before its children."""
    seen = set()
    stack = [(root, path, None)]
    while stack:
        module, path, parent = stack.pop()
        if id(module) in seen:
            continue
        seen.add(id(module))
        yield module, path, parent
        children = [
            (c, step_into(module, path, k), module) for k, c in children_of(module).items() if c is not None
        ]
        stack.extend(reversed(children))
