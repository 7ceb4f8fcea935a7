"""Step marks and labels around torch.optim.Optimizer.step, whatever optimizer it is.

Labels cost about a millisecond for 150 parameters, and a trace has to last for weeks: everything is labelled
around the first FULL_STEPS steps of each optimizer, and afterwards only when the bytes that survive a step
have changed since (something new persists), with a growing distance."""

import gc
import sys
import weakref

from _vramtrace import native

from . import tensors
from .guard import NAMING, careful, check_broken, hook

FULL_STEPS = 3
MAX_DISTANCE = 64

# Functions called with the number of a step whose last optimizer has just ended, or, while it is not known
# which is the last, when the next step's first one begins. They may end the process.
after_step = []


class OptimizerNotes:
    """What is remembered of one optimizer."""

    def __init__(self, optimizer):
        self.reference = weakref.ref(optimizer)
        self.steps = 0
        self.full = True  # labels are written around the step that is running
        self.survivors = None  # allocated bytes after the last full step
        self.changed = False  # since then
        self.distance = 1
        self.next_allowed = FULL_STEPS


class StepCounter:
    """Numbers training steps. Every optimizer that steps once belongs to the same step; the next step begins
    when one of them steps again. So the last optimizer of a step is known from the second step on."""

    def __init__(self):
        self.number = 0  # of the step whose optimizers are running, or ran last
        self.stepped = set()  # id of those that have, in this step
        self.cycle = None  # how many there were in the step before

    def begin(self, optimizer):
        if id(optimizer) in self.stepped:
            if len(self.stepped) != self.cycle:
                self.cycle = len(self.stepped)
                self.tell()
            self.number += 1
            self.stepped.clear()

    def end(self, optimizer):
        self.stepped.add(id(optimizer))
        if len(self.stepped) == self.cycle:
            self.tell()

    def tell(self):
        for function in after_step:
            function(self.number)

    def training(self):
        """Number of the step that a forward belongs to now."""
        return self.number + 1 if self.stepped else self.number


class Labeller:
    """Without a registry (labels switched off) it marks steps and nothing else."""

    def __init__(self, torch, registry):
        self.torch = torch
        self.registry = registry
        self.notes = {}  # id(optimizer) -> OptimizerNotes
        self.counter = StepCounter()
        self.known_names = (None, {})  # (step, id(parameter) -> names)
        self.labelled_step = None  # the step before whose optimizers the modules were labelled
        # A surprise while naming must not cost the step marks.
        self.name_model = careful(self.label_model, NAMING)
        self.name_states = careful(self.label_states, NAMING)

    # ---------------------------------------------------------------------------------------- optimizer hooks

    def before(self, optimizer, arguments, keywords):
        self.counter.begin(optimizer)
        notes = self.notes_of(optimizer)
        native.step(self.counter.number, False, type(optimizer).__name__, id(optimizer))
        notes.full = self.wants_labels(notes)
        if notes.full:
            self.name_model(optimizer)

    def after(self, optimizer, arguments, keywords):
        notes = self.notes_of(optimizer)
        if notes.full:
            self.name_states(optimizer)
            notes.survivors = native.allocated()
        notes.changed = native.allocated() != notes.survivors
        notes.steps += 1
        native.step(self.counter.number, True, type(optimizer).__name__, id(optimizer))
        native.expect_inputs()
        self.counter.end(optimizer)

    def notes_of(self, optimizer):
        notes = self.notes.get(id(optimizer))
        if notes is None or notes.reference() is not optimizer:
            self.notes = {k: n for k, n in self.notes.items() if n.reference() is not None}
            notes = self.notes[id(optimizer)] = OptimizerNotes(optimizer)
        return notes

    def wants_labels(self, notes):
        if self.registry is None:
            return False
        if notes.steps < FULL_STEPS:
            return True
        if notes.steps < notes.next_allowed or not notes.changed:
            return False
        notes.distance = min(2 * notes.distance, MAX_DISTANCE)
        notes.next_allowed = notes.steps + notes.distance
        return True

    # ---------------------------------------------------------------------------------------------- labels

    def names(self):
        """id(parameter) -> its names; a tied one has several."""
        names = {}
        for name, parameter in self.registry.parameters():
            names.setdefault(id(parameter), []).append(name)
        return names

    def names_for(self, optimizer):
        """names(), once a step: with an optimizer a parameter a walk for each would be quadratic. Looks
        harder for parameters that have none."""
        parameters = parameters_of(optimizer)
        step, names = self.known_names
        if step == self.counter.number and all(id(p) in names for p in parameters):
            return names
        unnamed = [p for p in parameters if not self.registry.add_owner(p)]
        names = self.names()
        if any(id(p) not in names for p in unnamed):
            self.registry.walk_objects()
            names = self.names()
        self.known_names = (self.counter.number, names)
        return names

    def label_model(self, optimizer):
        """Weights, buffers and gradients: of every known module before a step's first optimizer, and the
        optimizer's own."""
        check_broken()
        with self.torch._C.DisableTorchFunction():
            names = self.names_for(optimizer)
            whole = self.labelled_step != self.counter.number
            if whole:
                self.labelled_step = self.counter.number
                self.label_modules()
            for index, parameter in enumerate(parameters_of(optimizer)):
                known = names.get(id(parameter))
                if known is None:  # of no module: its place in the optimizer is its name
                    self.label_parameter(f"param.{index}", parameter)
                elif not whole:
                    for name in known:
                        self.label_parameter(name, parameter)

    def label_modules(self):
        self.registry.name_modules()
        for name, parameter in self.registry.parameters():
            self.label_parameter(name, parameter)
        for name, buffer in self.registry.buffers():
            tensors.label(tensors.BUFFER, buffer, name)

    def label_parameter(self, name, parameter):
        tensors.label(tensors.PARAMETER, parameter, name)
        gradient = parameter.grad if parameter.is_leaf else None
        if gradient is not None:
            tensors.label(tensors.GRADIENT, gradient, name)

    def label_states(self, optimizer):
        with self.torch._C.DisableTorchFunction():
            names = self.names_for(optimizer)
            order = {id(p): f"param.{i}" for i, p in enumerate(parameters_of(optimizer))}
            for parameter, state in list(optimizer.state.items()):
                for name in names.get(id(parameter)) or [order.get(id(parameter), "")]:
                    self.label_state(name, "", state, 0)

    def label_state(self, name, key, value, depth):
        """A state is a tensor, or a dict or list of such (L-BFGS keeps lists of directions)."""
        if isinstance(value, self.torch.Tensor):
            tensors.label(tensors.OPTIMIZER_STATE, value, name, key)
        elif depth < 3 and isinstance(value, dict):
            for inner, element in list(value.items()):
                self.label_state(name, key + "." + str(inner) if key else str(inner), element, depth + 1)
        elif depth < 3 and isinstance(value, (list, tuple)):
            for inner, element in enumerate(value):
                self.label_state(name, key + "." + str(inner) if key else str(inner), element, depth + 1)

    def label_everything(self, search=False):
        """Whatever is alive, step or no step: at a step's first forward, and at an out of memory, when it
        also searches for optimizers whose steps nobody saw."""
        check_broken()
        with self.torch._C.DisableTorchFunction():
            self.label_modules()
        optimizers = [notes.reference() for notes in list(self.notes.values())]
        for optimizer in optimizers + (self.unseen_optimizers() if search else []):
            if optimizer is not None:
                self.label_states(optimizer)

    def unseen_optimizers(self):
        """A step inside a compiled function calls no hook. Nothing of the objects is called."""
        kind = sys.modules["torch.optim.optimizer"].Optimizer
        return [o for o in gc.get_objects() if kind in type(o).__mro__ and id(o) not in self.notes]


def parameters_of(optimizer):
    return [p for group in optimizer.param_groups for p in group["params"]]


def install(torch, registry):
    labeller = Labeller(torch, registry)
    optimizer = sys.modules["torch.optim.optimizer"]  # torch.optim deletes the attribute
    before = getattr(optimizer, "register_optimizer_step_pre_hook", None)  # since 2.0
    after = getattr(optimizer, "register_optimizer_step_post_hook", None)
    if before is not None and after is not None:
        before(hook(labeller.before))
        after(hook(labeller.after))
    return labeller
