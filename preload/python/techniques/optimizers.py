"""Another optimizer, or the same one with another setting, whichever the program constructs."""

from .refusal import Refusal


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
