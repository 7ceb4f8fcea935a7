"""D10. A small model with a large vocabulary: most of the peak is logits.

https://github.com/huggingface/trl/issues/3678: 0.6 billion parameters, vocabulary 151,665, out of
memory on 20 GB.
"""

import torch
import torch.nn.functional as F
from torch import nn

torch.set_default_device("cuda")

VOCABULARY, WIDTH, BATCH, LENGTH = 151_665, 256, 4, 512


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.body = nn.Linear(WIDTH, WIDTH)
        self.lm_head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.lm_head(torch.relu(self.body(self.embedding(tokens))))


model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for _ in range(3):
    tokens = torch.randint(0, VOCABULARY, (BATCH, LENGTH))
    logits = model(tokens)
    loss = F.cross_entropy(logits.view(-1, VOCABULARY), tokens.view(-1))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
