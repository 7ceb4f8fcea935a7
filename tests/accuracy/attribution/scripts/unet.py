"""Trains a diffusion-style UNet with attention at its lowest resolution, on random images."""

import torch
from torch import nn
from torch.nn import functional


class Residual(nn.Module):
    def __init__(self, inner: int, outer: int, time: int) -> None:
        super().__init__()
        self.norm_1 = nn.GroupNorm(8, inner)
        self.conv_1 = nn.Conv2d(inner, outer, 3, padding=1)
        self.time = nn.Linear(time, outer)
        self.norm_2 = nn.GroupNorm(8, outer)
        self.conv_2 = nn.Conv2d(outer, outer, 3, padding=1)
        self.skip = nn.Conv2d(inner, outer, 1) if inner != outer else nn.Identity()

    def forward(self, x: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        h = self.conv_1(functional.silu(self.norm_1(x)))
        h = h + self.time(functional.silu(time))[:, :, None, None]
        return self.conv_2(functional.silu(self.norm_2(h))) + self.skip(x)


class Attention(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(8, width)
        self.qkv = nn.Conv2d(width, 3 * width, 1)
        self.out = nn.Conv2d(width, width, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(self.norm(x)).flatten(2).chunk(3, dim=1)
        weights = torch.softmax(q.transpose(1, 2) @ k / q.shape[1] ** 0.5, dim=-1)
        return x + self.out((v @ weights.transpose(1, 2)).view_as(x))


class UNet(nn.Module):
    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.time = nn.Sequential(nn.Linear(1, 4 * width), nn.SiLU(), nn.Linear(4 * width, 4 * width))
        self.first = nn.Conv2d(3, width, 3, padding=1)
        self.down_1 = Residual(width, width, 4 * width)
        self.pool_1 = nn.Conv2d(width, 2 * width, 3, stride=2, padding=1)
        self.down_2 = Residual(2 * width, 2 * width, 4 * width)
        self.pool_2 = nn.Conv2d(2 * width, 4 * width, 3, stride=2, padding=1)
        self.middle = Residual(4 * width, 4 * width, 4 * width)
        self.attention = Attention(4 * width)
        self.up_2 = Residual(6 * width, 2 * width, 4 * width)
        self.up_1 = Residual(3 * width, width, 4 * width)
        self.last = nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, x: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        time = self.time(steps[:, None])
        a = self.down_1(self.first(x), time)
        b = self.down_2(self.pool_1(a), time)
        c = self.attention(self.middle(self.pool_2(b), time))
        up = functional.interpolate(c, scale_factor=2)
        up = self.up_2(torch.cat([up, b], dim=1), time)
        up = functional.interpolate(up, scale_factor=2)
        return self.last(self.up_1(torch.cat([up, a], dim=1), time))


def main() -> None:
    torch.manual_seed(0)
    model = UNet().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    schedule = torch.linspace(0.99, 0.01, 1000, device="cuda")
    for step in range(3):
        clean = torch.randn(8, 3, 64, 64).cuda()
        steps = torch.randint(0, 1000, (8,), device="cuda")
        kept = schedule[steps].view(-1, 1, 1, 1)
        noise = torch.randn_like(clean)
        noisy = kept.sqrt() * clean + (1 - kept).sqrt() * noise
        loss = functional.mse_loss(model(noisy, steps.float()), noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
