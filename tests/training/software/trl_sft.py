"""Supervised fine-tuning of a small Llama with trl's SFTTrainer."""

import sys

from datasets import Dataset
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import SFTConfig, SFTTrainer


def tokenizer() -> PreTrainedTokenizerFast:
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = {"<pad>": 0, "<s>": 1, "</s>": 2, "<unk>": 3} | {f"w{i}": i + 4 for i in range(508)}
    made = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="<pad>", bos_token="<s>", eos_token="</s>", unk_token="<unk>"
    )


def main(folder: str) -> None:
    config = LlamaConfig(
        vocab_size=512,
        hidden_size=128,
        intermediate_size=352,
        num_hidden_layers=2,
        num_attention_heads=4,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
    )
    rows = [{"text": " ".join(f"w{(7 * i + j) % 508}" for j in range(20 + i % 30))} for i in range(64)]
    arguments = SFTConfig(
        output_dir=folder,
        max_steps=3,
        per_device_train_batch_size=4,
        max_length=64,
        logging_steps=1,
        report_to=[],
        save_strategy="no",
        bf16=True,
    )
    trainer = SFTTrainer(
        model=LlamaForCausalLM(config),
        args=arguments,
        train_dataset=Dataset.from_list(rows),
        processing_class=tokenizer(),
    )
    result = trainer.train()
    print(f"steps {result.global_step} loss {result.training_loss:.4f}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "trl-output")
