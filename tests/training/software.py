"""Programs of the software that people train with, each a script in software/ that knows nothing of us."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Program:
    script: str
    packages: tuple[str, ...] = ()  # import names, beyond those of every test
    arguments: tuple[str, ...] = ()
    ranks: int = 1  # above 1 it is started by torchrun
    says: str = ""  # a part of its output
    environment: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return "-".join(
            [self.script, *self.arguments, *(["ranks", str(self.ranks)] if self.ranks > 1 else [])]
        )


PROGRAMS = (
    Program("hf_trainer", ("transformers", "accelerate"), says="steps 4 loss"),
    Program("generate", ("transformers",), says="ends by itself: (2, 9)"),
    Program("accelerate_fp16", ("accelerate",), says="scale 65536 skipped 0"),
    Program("peft_lora", ("transformers", "peft"), says="step 2 loss"),
    Program("peft_qlora", ("transformers", "peft", "bitsandbytes"), says="step 2 loss"),
    Program("trl_sft", ("transformers", "trl", "datasets", "accelerate"), says="steps 3 loss"),
    Program("timm_efficientnet", ("timm",), says="scale 65536"),
    Program("diffusers_unet", ("diffusers",), says="sampled (1, 3, 32, 32) True"),
    Program("lightning_early_stopping", ("lightning",), says="epochs 6 val_loss"),
    Program("ultralytics_yolo", ("ultralytics", "cv2"), says="trained and validated"),
    Program("torchao_optimizer", ("torchao",), says="(4, 512)"),
    Program("liger_llama", ("transformers", "liger_kernel", "triton"), says="step 1 loss"),
    Program("deepspeed_zero", ("deepspeed",), ("1",), says="stage 1 skipped 0"),
    Program("deepspeed_zero", ("deepspeed",), ("2",), says="stage 2 skipped 0"),
    Program("deepspeed_zero", ("deepspeed",), ("3",), says="stage 3 skipped 0"),
    Program("ddp", says="rank 0 of 1"),
    Program("ddp", ranks=2, says="rank 1 of 2"),
    Program("fsdp", arguments=("1",), ranks=2, says="rank 1 of 2"),
    Program("fsdp", arguments=("2",), ranks=2, says="rank 1 of 2"),
    Program("compile_default", ("triton",), ("default",), says="graphs 1"),
    Program("compile_default", ("triton",), ("reduce-overhead",), says="graphs 1"),
)
