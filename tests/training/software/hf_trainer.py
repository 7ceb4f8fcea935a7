"""Fine-tunes a small Llama with transformers' Trainer: bf16, gradient checkpointing, evaluation, a
checkpoint."""

import sys

import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments


class Sentences(torch.utils.data.Dataset):
    def __init__(self, count: int, length: int, vocabulary: int) -> None:
        generator = torch.Generator().manual_seed(1)
        self.tokens = torch.randint(0, vocabulary, (count, length), generator=generator)

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {"input_ids": self.tokens[index], "labels": self.tokens[index]}


def main(folder: str) -> None:
    config = LlamaConfig(
        vocab_size=8192,
        hidden_size=256,
        intermediate_size=688,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
    )
    model = LlamaForCausalLM(config)
    arguments = TrainingArguments(
        output_dir=folder,
        per_device_train_batch_size=4,
        gradient_accumulation_steps=2,
        max_steps=4,
        bf16=True,
        gradient_checkpointing=True,
        eval_strategy="steps",
        eval_steps=2,
        save_steps=4,
        logging_steps=1,
        report_to=[],
    )
    data = Sentences(64, 128, config.vocab_size)
    trainer = Trainer(model=model, args=arguments, train_dataset=data, eval_dataset=Sentences(8, 128, 8192))
    result = trainer.train()
    print(f"steps {result.global_step} loss {result.training_loss:.4f}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "trainer-output")
