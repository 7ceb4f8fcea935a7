"""D06. A half-precision model is saved as one single-precision dictionary, which the card cannot hold
as well.

https://github.com/huggingface/transformers/issues/23386: LLaMA 7B trains on 32 GB cards and dies
while saving.
"""

import torch
from torch import nn

torch.set_default_device("cuda")


class Trainer:
    def __init__(self) -> None:
        self.model = nn.Sequential(*(nn.Linear(8192, 8192) for _ in range(24))).bfloat16()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-4)

    def step(self) -> None:
        self.model(torch.randn(8, 8192, dtype=torch.bfloat16)).mean().backward()
        self.optimizer.step()
        self.optimizer.zero_grad()

    def save_checkpoint(self, path: str) -> None:
        state = {name: tensor.float() for name, tensor in self.model.state_dict().items()}
        torch.save(list(state), path)


trainer = Trainer()
for _ in range(3):
    trainer.step()
trainer.save_checkpoint("/dev/null")
