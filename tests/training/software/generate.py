"""Generates text with a small GPT-2: greedily until the end token, by sampling, with beams, with a static
cache."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel


def main() -> None:
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=512, n_positions=128, n_embd=64, n_layer=2, n_head=4, bos_token_id=1, eos_token_id=2
    )
    model = GPT2LMHeadModel(config).to("cuda").eval()
    prompt = torch.randint(3, 512, (2, 8), device="cuda")
    mask = torch.ones_like(prompt)
    common = {"attention_mask": mask, "max_new_tokens": 24, "pad_token_id": 2}
    for name, options in {
        "greedy": {},
        "sample": {"do_sample": True, "top_k": 20, "temperature": 0.8},
        "beams": {"num_beams": 3, "early_stopping": True},
        "static cache": {"cache_implementation": "static", "disable_compile": True},
    }.items():
        tokens = model.generate(prompt, **common, **options)
        assert tokens[:, :8].equal(prompt)
        print(f"{name}: {tuple(tokens.shape)}, {len(set(tokens[0, 8:].tolist()))} different tokens")

    # The head favours the end token: greedy search stops at once.
    with torch.no_grad():
        model.lm_head.weight[2] = model.lm_head.weight.abs().max() * 0 + 5.0
        model.transformer.ln_f.bias.fill_(1.0)
    tokens = model.generate(prompt, **common)
    assert tokens.shape == (2, 9), tokens.shape
    print("ends by itself:", tuple(tokens.shape))


if __name__ == "__main__":
    main()
