"""Trains a language model of two LSTM layers on random tokens, its state carried from batch to batch."""

import torch
from torch import nn
from torch.nn import functional


class Model(nn.Module):
    def __init__(self, vocabulary: int, width: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.lstm = nn.LSTM(width, width, num_layers=2, batch_first=True, dropout=0.1)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens: torch.Tensor, state: tuple | None) -> tuple[torch.Tensor, tuple]:
        x, state = self.lstm(self.embedding(tokens), state)
        return self.head(x), state


def main() -> None:
    torch.manual_seed(0)
    model = Model(4096, 512).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    state = None
    for step in range(4):
        tokens = torch.randint(0, 4096, (32, 65), device="cuda")
        logits, state = model(tokens[:, :-1], state)
        loss = functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimizer.step()
        optimizer.zero_grad()
        state = tuple(part.detach() for part in state)
        print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
