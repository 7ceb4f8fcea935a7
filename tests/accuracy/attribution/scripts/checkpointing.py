"""Trains a transformer whose blocks are checkpointed: their activations are computed again in backward."""

import argparse

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint


class Model(nn.Module):
    def __init__(self, reentrant: bool, width: int = 512, layers: int = 6) -> None:
        super().__init__()
        self.reentrant = reentrant
        self.tokens = nn.Embedding(8192, width)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 8, 4 * width, batch_first=True, norm_first=True)
            for _ in range(layers)
        )
        self.head = nn.Linear(width, 8192, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.tokens(tokens)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=self.reentrant)
        return self.head(x)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reentrant", action="store_true")
    options = parser.parse_args()
    torch.manual_seed(0)
    model = Model(options.reentrant).cuda().train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for step in range(3):
        tokens = torch.randint(0, 8192, (8, 257), device="cuda")
        logits = model(tokens[:, :-1])
        loss = functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
