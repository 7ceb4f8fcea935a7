"""D05. Evaluation keeps the predictions of every batch on the device and joins them at the end.

https://github.com/huggingface/transformers/issues/7158: out of memory in evaluation though training
fits.
"""

import torch
from torch import nn

torch.set_default_device("cuda")

CLASSES, LENGTH = 30_000, 128


def evaluate(model: nn.Module) -> torch.Tensor:
    model.eval()
    logits = []
    with torch.no_grad():
        for _ in range(24):
            x = torch.randn(16, LENGTH, 256)
            logits.append(model(x))
    return torch.cat(logits)


model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, CLASSES))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for _ in range(3):
    x = torch.randn(2, LENGTH, 256)
    model(x).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
print(evaluate(model).shape)
