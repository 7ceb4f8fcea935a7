"""D04. One slide has many more tiles than the others; it fits, and sets the peak.

https://github.com/prov-gigapath/prov-gigapath/issues/12: one slide of 45,680 tiles nearly fills a
40 GB card.
"""

import torch
from torch import nn

torch.set_default_device("cuda")

model = nn.Sequential(nn.Linear(768, 3072), nn.GELU(), nn.Linear(3072, 768))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for step in range(24):
    tiles = 45_680 if step == 20 else 8_000
    x = torch.randn(1, tiles, 768)
    model(x).mean().backward()
    del x
    optimizer.step()
    optimizer.zero_grad()
