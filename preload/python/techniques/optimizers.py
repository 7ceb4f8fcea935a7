"""Another optimizer, or the same one with another setting, whichever the program constructs."""

import types

from .blocks import blocks_of
from .refusal import Refusal, number


def foreach_off(scene, options):
    scene.defaults.update(foreach=False, fused=False)


def fused(scene, options):
    def check(optimizer):
        if "fused" not in optimizer.defaults:
            raise Refusal(f"{type(optimizer).__name__} has no fused implementation")

    scene.defaults.update(foreach=None, fused=True)
    scene.finish_optimizer(check)


def sgd(scene, options):
    scene.replace_optimizer(lambda parameters, lr: scene.torch.optim.SGD(parameters, lr=lr))


def adafactor(scene, options):
    found = getattr(scene.torch.optim, "Adafactor", None)
    if found is None:
        raise Refusal("torch.optim.Adafactor came with PyTorch 2.5")
    scene.replace_optimizer(lambda parameters, lr: found(parameters, lr=lr))


def of_bitsandbytes(scene, name):
    def build(parameters, lr):
        try:
            import bitsandbytes
        except ImportError as missing:
            raise Refusal("bitsandbytes is not installed; pip install bitsandbytes") from missing
        return getattr(bitsandbytes.optim, name)(parameters, lr=lr)

    scene.replace_optimizer(build)


def adamw_8bit(scene, options):
    of_bitsandbytes(scene, "AdamW8bit")


def paged_8bit(scene, options):
    of_bitsandbytes(scene, "PagedAdamW8bit")


def lion(scene, options):
    def build(parameters, lr):
        try:
            from lion_pytorch import Lion
        except ImportError as missing:
            raise Refusal("lion-pytorch is not installed; pip install lion-pytorch") from missing
        return Lion(parameters, lr=lr)

    scene.replace_optimizer(build)


def in_backward(scene, options):
    """One optimizer a parameter, stepped when its gradient is complete. The program's own stays and finds no
    gradient."""
    state = {}

    def split(optimizer):
        scene.building = True
        try:
            for group in optimizer.param_groups:
                settings = {k: v for k, v in group.items() if k != "params"}
                for parameter in group["params"]:
                    state[parameter] = type(optimizer)([{"params": [parameter], **settings}])
                    parameter.register_post_accumulate_grad_hook(step)
        finally:
            scene.building = False

    def step(parameter):
        state[parameter].step()
        state[parameter].zero_grad()

    scene.finish_optimizer(split)


def set_to_none(scene, options):
    """Gradients are gone right after the step."""

    def clear(optimizer):
        optimizer.register_step_post_hook(lambda opt, args, kwargs: opt.zero_grad(set_to_none=True))
        optimizer.zero_grad = lambda set_to_none=True: type(optimizer).zero_grad(optimizer, True)

    scene.finish_optimizer(clear)


def bucket_view(scene, options):
    torch = scene.torch
    parallel = torch.nn.parallel.DistributedDataParallel
    initialize = parallel.__init__

    def init(self, *arguments, **keywords):
        keywords["gradient_as_bucket_view"] = True
        initialize(self, *arguments, **keywords)

    parallel.__init__ = init


def muon(scene, options):
    """Matrices of the repeated blocks by torch.optim.Muon, everything else by AdamW."""
    torch = scene.torch
    if not hasattr(torch.optim, "Muon"):
        raise Refusal("torch.optim.Muon came with PyTorch 2.9")

    class MuonWithAdamW(torch.optim.Optimizer):
        def __init__(self, matrices, others, lr):
            super().__init__([{"params": matrices}, {"params": others}], {"lr": lr})
            self.parts = [torch.optim.Muon(matrices, lr=lr), torch.optim.AdamW(others, lr=lr)]

        def step(self, closure=None):
            loss = None if closure is None else closure()
            for part in self.parts:
                part.step()
            return loss

    def build(parameters, lr):
        flat = [p for g in parameters for p in (g["params"] if isinstance(g, dict) else (g,))]
        blocks = [block for root in scene.roots.values() for block in blocks_of(root)]
        inner = {id(p) for block in blocks for p in block.parameters() if p.dim() == 2}
        matrices = [p for p in flat if id(p) in inner]
        if not matrices:
            raise Refusal("no repeated block has a matrix to train")
        return MuonWithAdamW(matrices, [p for p in flat if id(p) not in inner], lr)

    scene.replace_optimizer(build)


def optimizer_offload(scene, options):
    """The state stays on the host, where a copy of the parameters is updated."""
    torch = scene.torch

    def move(optimizer):
        if not type(optimizer).__module__.startswith("torch.optim"):
            raise Refusal(f"{type(optimizer).__name__} does not run on the host")
        copies = {}  # parameter -> its copy on the host
        inner = []

        def step(self, closure=None):
            loss = None if closure is None else closure()
            with torch.no_grad():
                if not inner:
                    inner.append(on_host(scene, self, copies))
                for parameter, copy in copies.items():
                    copy.grad = None if parameter.grad is None else parameter.grad.to("cpu")
                inner[0].step()
                for parameter, copy in copies.items():
                    parameter.copy_(copy)
                    copy.grad = None
            return loss

        optimizer.step = types.MethodType(step, optimizer)

    scene.finish_optimizer(move)


def on_host(scene, optimizer, copies):
    groups = []
    for group in optimizer.param_groups:
        copies.update((p, p.detach().to("cpu").requires_grad_()) for p in group["params"])
        groups.append({**group, "params": [copies[p] for p in group["params"]], "fused": None})
        if "fused" not in group:
            del groups[-1]["fused"]
    scene.building = True
    try:
        return type(optimizer)(groups)
    finally:
        scene.building = False


def gradient_accumulation(scene, options):
    """The program's batches become micro-batches: its optimizer steps after so many of them."""
    steps = number(options, "steps", 2)

    def gate(optimizer):
        step, zero_grad = optimizer.step, optimizer.zero_grad
        seen = [0]

        def gated(self, *arguments, **keywords):
            seen[0] += 1
            if seen[0] % steps == 0:
                return step(*arguments, **keywords)
            return None

        def kept(self, *arguments, **keywords):
            if seen[0] % steps == 0:
                zero_grad(*arguments, **keywords)

        optimizer.step = types.MethodType(gated, optimizer)
        optimizer.zero_grad = types.MethodType(kept, optimizer)

    scene.finish_optimizer(gate)
