"""Where techniques take hold of a program.

The optimizer's construction is the one moment that every training program has, after its model is built and
before anything has run: there the model is changed, and there the optimizer may be exchanged."""

import functools

from .refusal import Refusal, refuse


class Scene:
    def __init__(self, torch, registry):
        self.torch = torch
        self.registry = registry
        self.technique = ""  # whose row is being read
        self.on_model = []  # (key, function(root)), called once for each model that gets an optimizer
        self.on_forward = []  # functions called before a root's forward
        self.on_backward = []  # functions called when backward() begins
        self.after_optimizer = []  # (key, function(optimizer))
        self.defaults = {}  # of every optimizer
        self.replacement = None  # (key, function(parameters, lr) -> optimizer)
        self.roots = {}  # id -> root, so that each is changed once
        self.building = False

    def model(self, function):
        self.on_model.append((self.technique, function))

    def replace_optimizer(self, function):
        if self.replacement is not None:
            raise Refusal(f"the optimizer is already exchanged by {self.replacement[0]}")
        self.replacement = (self.technique, function)

    def finish_optimizer(self, function):
        self.after_optimizer.append((self.technique, function))

    # ------------------------------------------------------------------------------------------------ hooks

    def install(self):
        self.watch_optimizers()
        if self.on_backward:
            self.watch_backward()

    def watch_optimizers(self):
        scene = self
        base = self.torch.optim.Optimizer
        made = base.__new__  # object's
        initialize = base.__init__

        def new(cls, *arguments, **keywords):
            instance = made(cls) if made is object.__new__ else made(cls, *arguments, **keywords)
            if scene.building or not (arguments or "params" in keywords):
                return instance
            parameters = keywords["params"] if "params" in keywords else arguments[0]
            parameters = parameters if isinstance(parameters, list) else list(parameters)
            scene.change_models(parameters)
            lr = keywords.get("lr", arguments[1] if len(arguments) > 1 else 1e-3)
            if scene.replacement is None:
                # Python calls __init__ with the arguments as they came, and a generator is at its end now.
                instance.__dict__["_vramtrace_parameters"] = scene.trained(parameters)
                return instance
            key, build = scene.replacement
            scene.building = True
            try:
                return scene.finished(build(scene.trained(parameters), lr))
            except Refusal as refusal:
                refuse(key, str(refusal))
            finally:
                scene.building = False

        @functools.wraps(initialize)
        def init(self, params, defaults, *arguments, **keywords):
            given = self.__dict__.pop("_vramtrace_parameters", None)
            defaults = {**defaults, **{k: v for k, v in scene.defaults.items() if k in defaults}}
            initialize(self, params if given is None else given, defaults, *arguments, **keywords)
            if not scene.building:
                scene.finished(self)

        base.__new__, base.__init__ = new, init

    def finished(self, optimizer):
        for key, function in self.after_optimizer:
            try:
                function(optimizer)
            except Refusal as refusal:
                refuse(key, str(refusal))
        return optimizer

    def watch_backward(self):
        scene = self
        backward = self.torch.Tensor.backward

        @functools.wraps(backward)
        def noted(*arguments, **keywords):
            for function in scene.on_backward:
                function()
            return backward(*arguments, **keywords)

        self.torch.Tensor.backward = noted

    # ----------------------------------------------------------------------------------------------- models

    def change_models(self, parameters):
        flat = [p for g in parameters for p in (g["params"] if isinstance(g, dict) else (g,))]
        for entry in flat:
            parameter = entry[1] if isinstance(entry, tuple) else entry
            self.registry.add_owner(parameter)
        for root, _ in self.registry.live_roots():
            if id(root) not in self.roots:
                self.roots[id(root)] = root
                self.change_model(root)
        if self.on_model and not self.roots:
            refuse(self.on_model[0][0], "no module is known to hold the optimizer's parameters")

    def change_model(self, root):
        for key, function in self.on_model:
            try:
                function(root)
            except Refusal as refusal:
                refuse(key, str(refusal))
        if not self.on_forward:
            return
        forward, functions = root.forward, self.on_forward

        @functools.wraps(forward)
        def noted(*arguments, **keywords):
            for function in functions:
                arguments, keywords = function(arguments, keywords)
            return forward(*arguments, **keywords)

        root.forward = noted

    def trained(self, parameters):
        """The parameter groups as they are after the models were changed."""
        if not self.on_model:
            return parameters
        if parameters and isinstance(parameters[0], dict):
            kept = [{**g, "params": [p for p in g["params"] if p.requires_grad]} for g in parameters]
            known = {id(p) for g in kept for p in g["params"]}
            added = [p for p in self.all_trained() if id(p) not in known]
            kept = [g for g in kept if g["params"]]
            return [*kept, {"params": added}] if added else kept
        return self.all_trained()

    def all_trained(self):
        return [p for root in self.roots.values() for p in root.parameters() if p.requires_grad]
