"""torchao: its 8-bit AdamW, then int8 weights for inference."""

import torch
from torch import nn
from torchao.optim import AdamW8bit
from torchao.quantization import Int8WeightOnlyConfig, quantize_


def main() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 512)).to("cuda", torch.bfloat16)
    optimizer = AdamW8bit(model.parameters(), lr=1e-3)
    for step in range(2):
        loss = model(torch.randn(16, 512, device="cuda", dtype=torch.bfloat16)).float().pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"step {step} loss {loss.item():.4f}")
    quantize_(model, Int8WeightOnlyConfig())
    with torch.no_grad():
        print(tuple(model(torch.randn(4, 512, device="cuda", dtype=torch.bfloat16)).shape))


if __name__ == "__main__":
    main()
