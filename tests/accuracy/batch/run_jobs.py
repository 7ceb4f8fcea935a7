"""Runs training scripts one after the other, each in a child of this process, which has PyTorch loaded: on a
busy machine importing it costs more than a dry run. Started under the preloads by `runs.py`.

Reads a job a line from stdin: {"script", "arguments", "folder", "apply"}, and answers with the child's
process number and exit status. The child leaves what it printed and `peaks.json` (PyTorch's own counters,
which are the truth) in the folder. `apply`: techniques to apply from outside, as VRAMTRACE_APPLY has them;
may be empty."""

import importlib
import json
import os
import runpy
import sys
import traceback
from pathlib import Path

import torch
import torch._dynamo  # what the children would load one by one: optimizers need this one
import torchvision  # noqa: F401
from transformers import (  # noqa: F401
    AutoModelForCausalLM,
    GPT2LMHeadModel,
    LlamaForCausalLM,
    MistralForCausalLM,
    Qwen2ForCausalLM,
    Qwen3ForCausalLM,
)


def apply(techniques: str) -> None:
    """What the preload does when torch is imported, which was before the fork."""
    os.environ["VRAMTRACE_APPLY"] = techniques
    finder = sys.modules["_vramtrace.import_finder"]
    sys.meta_path.append(finder.EmbeddedFinder)
    try:
        importlib.import_module("_vramtrace.techniques").install(torch)
    finally:
        sys.meta_path.remove(finder.EmbeddedFinder)


def run(job: dict) -> None:
    folder = Path(job["folder"])
    os.chdir(folder)
    output = os.open("output.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    if job["apply"]:
        apply(job["apply"])
    sys.argv = [job["script"], *job["arguments"]]
    runpy.run_path(job["script"], run_name="__main__")
    torch.cuda.synchronize()
    peaks = {
        "allocated": torch.cuda.max_memory_allocated(),
        "reserved": torch.cuda.max_memory_reserved(),
    }
    Path("peaks.json").write_text(json.dumps(peaks))


def main() -> None:
    if torch.cuda.is_initialized():
        raise RuntimeError("the device is in use before the children are made: they could not use it")
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                run(json.loads(line))
                status = 0
            except SystemExit as end:
                status = int(end.code or 0)
            except BaseException:
                traceback.print_exc()
            # Interpreter exit in a fork of a process with PyTorch loaded has nothing left to do but write.
            sys.stdout.flush()
            sys.stderr.flush()
            torch.cuda.synchronize()
            os._exit(status)
        _, status = os.waitpid(child, 0)
        print(child, os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
