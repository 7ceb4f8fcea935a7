"""Trains a small T5, an encoder and a decoder, from its configuration on random tokens."""

import torch
from transformers import T5Config, T5ForConditionalGeneration


def main() -> None:
    torch.manual_seed(0)
    config = T5Config(
        vocab_size=8192,
        d_model=384,
        d_kv=64,
        d_ff=1024,
        num_layers=4,
        num_heads=6,
        decoder_start_token_id=0,
        use_cache=False,
    )
    model = T5ForConditionalGeneration(config).to("cuda")
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for step in range(3):
        source = torch.randint(1, 8192, (8, 192)).cuda()
        target = torch.randint(1, 8192, (8, 64)).cuda()
        loss = model(input_ids=source, labels=target).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
