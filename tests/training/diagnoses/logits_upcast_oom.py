"""D10. Half-precision logits, then a copy of all of them in single precision: the card is too small
for both.

https://github.com/huggingface/transformers/pull/33902: removing the copy took almost half of the
peak.
"""

import torch
import torch.nn.functional as F
from torch import nn

torch.set_default_device("cuda")

VOCABULARY, WIDTH, BATCH, LENGTH = 128_256, 512, 8, 1024


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.lm_head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        logits = self.lm_head(self.norm(self.embedding(tokens))).float()
        return F.cross_entropy(logits.view(-1, VOCABULARY), labels.view(-1))


model = Model().bfloat16()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for _ in range(3):
    tokens = torch.randint(0, VOCABULARY, (BATCH, LENGTH))
    loss = model(tokens, tokens)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
