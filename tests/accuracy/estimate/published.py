"""Published measurements on real GPUs whose settings an estimate can be given, and what they measured.

`whole`: model, lengths, method and libraries are all stated; these are held to 10 %. Others are shown with
the reason for their difference. `counter`: allocated (torch's), reserved (torch's maximum, or NVML's less the
context), as the source counts.
"""

from __future__ import annotations

from dataclasses import dataclass

FMS = "https://github.com/foundation-model-stack/fms-acceleration (scripts/benchmarks/refs, 876e2ed)"
XMEM = "https://github.com/Stone-ResearchLife/xMem (plot/data, d61e076)"
TUNE = "https://github.com/meta-pytorch/torchtune (memory optimizations tutorial, bd2a0fc)"
AO = "https://github.com/pytorch/ao (torchao/optim/README.md)"
PEFT = "https://github.com/huggingface/peft (method_comparison/MetaMathQA, 5d602fd)"
FAKEGPU = "https://github.com/FanBB2333/FakeGPU (docs/llm-sft-memory-estimation.md, 7d5cf83)"
BERT = "https://huggingface.co/docs/transformers/v4.16.2/en/performance"
LITGPT = "https://github.com/Lightning-AI/litgpt (tutorials/resource-tables.md, 2685705)"


@dataclass(frozen=True)
class Published:
    name: str
    model: str  # a name of models.py
    options: str
    measured: int
    counter: str
    source: str
    whole: bool
    why: str = ""  # what explains a difference


GIB = 1 << 30
CONTEXT = 1343 << 20  # of the BERT-large table, measured in the same runs
ATTENTION_LORA = (
    "--method lora --targets attention --rank 16 --lora-dropout 0.1 --checkpointing --seq 4096 --batch 4"
)
LADDER = "--batch 2 --seq 4096 --optimizer adamw-fused"
OLD_BERT = "--seq 512 --attention eager --no-foreach"

OLD_LOSS = "transformers 4.48 copies the logits once more"
UNEVEN = "lengths vary up to 128 and fragment the cache; transformers 4 copies the logits once more"

PUBLISHED = [
    Published(
        "Mistral-7B full, 4 x 4096",
        "Mistral-7B",
        "--batch 4 --seq 4096 --checkpointing",
        72_434_837_504,
        "allocated",
        FMS,
        True,
    ),
    Published(
        "Mistral-7B full, 8 x 4096",
        "Mistral-7B",
        "--batch 8 --seq 4096 --checkpointing",
        72_435_230_720,
        "allocated",
        FMS,
        True,
    ),
    Published(
        "Mistral-7B LoRA, 4 x 4096",
        "Mistral-7B",
        ATTENTION_LORA,
        26_704_571_904,
        "allocated",
        FMS,
        True,
        OLD_LOSS,
    ),
    Published(
        "Mistral-7B QLoRA, 4 x 4096",
        "Mistral-7B",
        ATTENTION_LORA.replace("lora ", "qlora ", 1),
        16_373_838_336,
        "allocated",
        FMS,
        True,
        OLD_LOSS,
    ),
    Published(
        "Qwen3-8B answers 9 + 2 tokens",
        "Qwen3-8B",
        "--method inference --seq 9 --new-tokens 2",
        16_396_630_528,
        "allocated",
        FAKEGPU,
        True,
    ),
    Published(
        "Llama-2-7B answers",
        "Llama-2-7B",
        "--method inference --seq 64 --new-tokens 50",
        13_520_000_000,
        "allocated",
        LITGPT,
        True,
        "litgpt's own modules",
    ),
    Published(
        "gpt2 AdamW, 27 x 128",
        "gpt2",
        "--batch 27 --seq 128 --dtype fp32",
        9_823_059_968,
        "reserved",
        XMEM,
        False,
        UNEVEN,
    ),
    Published(
        "opt-125m AdamW, 11 x 128",
        "opt-125m",
        "--batch 11 --seq 128 --dtype fp32",
        3_955_228_672,
        "reserved",
        XMEM,
        False,
        UNEVEN,
    ),
    Published(
        "opt-125m AdamW, 38 x 128",
        "opt-125m",
        "--batch 38 --seq 128 --dtype fp32",
        8_906_604_544,
        "reserved",
        XMEM,
        False,
        UNEVEN,
    ),
    Published(
        "t5-small AdamW, 20 x 128",
        "t5-small",
        "--batch 20 --seq 128 --dtype fp32",
        4_622_123_008,
        "reserved",
        XMEM,
        False,
        UNEVEN,
    ),
    Published(
        "t5-small AdamW, 29 x 128",
        "t5-small",
        "--batch 29 --seq 128 --dtype fp32",
        6_429_868_032,
        "reserved",
        XMEM,
        False,
        UNEVEN,
    ),
    Published(
        "Llama-3.2-3B full, peft",
        "Llama-3.2-3B",
        "--batch 4 --seq 768",
        38_868_615_168,
        "reserved",
        PEFT,
        False,
        "the longest batch of the data decides, up to 768 tokens; evaluation is in it",
    ),
    Published(
        "Llama-3.2-3B LoRA, peft",
        "Llama-3.2-3B",
        "--method lora --targets qv --rank 32 --batch 4 --seq 768",
        22_292_725_760,
        "reserved",
        PEFT,
        False,
        "the same",
    ),
    Published(
        "torchtune 3B, packed",
        "Llama-3.2-3B",
        LADDER,
        64_424_509_440,
        "allocated",
        TUNE,
        False,
        "torchtune's own modules, not transformers'",
    ),
    Published(
        "torchtune 3B, chunked, checkpointing",
        "Llama-3.2-3B",
        LADDER + " --chunked-loss --checkpointing",
        26_736_171_418,
        "allocated",
        TUNE,
        False,
        "compiled: norms and activations are fused",
    ),
    Published(
        "torchtune 3B, optimizer in the backward",
        "Llama-3.2-3B",
        LADDER + " --chunked-loss --checkpointing --in-backward",
        24_803_436_134,
        "allocated",
        TUNE,
        False,
        "compiled",
    ),
    Published(
        "torchtune 3B, checkpoints on the host",
        "Llama-3.2-3B",
        LADDER + " --chunked-loss --in-backward --offload checkpoints",
        23_407_571_763,
        "allocated",
        TUNE,
        False,
        "compiled",
    ),
    Published(
        "torchtune 3B, 8-bit",
        "Llama-3.2-3B",
        "--batch 2 --seq 4096 --chunked-loss --in-backward --offload checkpoints --optimizer adamw-8bit",
        18_897_856_102,
        "allocated",
        TUNE,
        False,
        "compiled",
    ),
    Published(
        "torchao 7B, fused AdamW",
        "Llama-2-7B",
        "--batch 2 --seq 512 --checkpointing --optimizer adamw-fused",
        55_405_078_118,
        "allocated",
        AO,
        False,
        "lengths of the data are not stated",
    ),
    Published(
        "torchao 7B, 8-bit",
        "Llama-2-7B",
        "--batch 2 --seq 512 --checkpointing --optimizer adamw-8bit",
        42_198_053_683,
        "allocated",
        AO,
        False,
        "the same",
    ),
    Published(
        "torchao 7B, 4-bit",
        "Llama-2-7B",
        "--batch 2 --seq 512 --checkpointing --optimizer adamw-4bit",
        35_648_228_557,
        "allocated",
        AO,
        False,
        "the same",
    ),
    Published(
        "BERT-large, batch 4",
        "bert-large",
        OLD_BERT + " --dtype fp32 --batch 4",
        15_675_162_624 - CONTEXT,
        "reserved",
        BERT,
        False,
        "transformers 4.16's own AdamW; NVML counts what the allocator caches",
    ),
    Published(
        "BERT-large, 4 micro-batches",
        "bert-large",
        OLD_BERT + " --dtype fp32 --accumulation 4",
        9_102_688_256 - CONTEXT,
        "reserved",
        BERT,
        False,
        "the same",
    ),
    Published(
        "BERT-large, and checkpointing",
        "bert-large",
        OLD_BERT + " --dtype fp32 --accumulation 4 --checkpointing",
        7_104_102_400 - CONTEXT,
        "reserved",
        BERT,
        False,
        "the same",
    ),
    Published(
        "BERT-large, mixed precision",
        "bert-large",
        OLD_BERT + " --precision autocast --batch 4",
        14_616_100_864 - CONTEXT,
        "reserved",
        BERT,
        False,
        "the same, with FP16 and a scaler",
    ),
    Published(
        "BERT-large, 8-bit Adam",
        "bert-large",
        OLD_BERT + " --dtype fp32 --batch 4 --optimizer adamw-8bit",
        13_720_616_960 - CONTEXT,
        "reserved",
        BERT,
        False,
        "the same",
    ),
]
