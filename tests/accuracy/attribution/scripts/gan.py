"""Trains a DCGAN: two networks and two optimizers, each with a backward of its own."""

import torch
from torch import nn
from torch.nn import functional


def generator(noise: int, width: int) -> nn.Sequential:
    return nn.Sequential(
        nn.ConvTranspose2d(noise, 8 * width, 4, 1, 0, bias=False),
        nn.BatchNorm2d(8 * width),
        nn.ReLU(True),
        nn.ConvTranspose2d(8 * width, 4 * width, 4, 2, 1, bias=False),
        nn.BatchNorm2d(4 * width),
        nn.ReLU(True),
        nn.ConvTranspose2d(4 * width, 2 * width, 4, 2, 1, bias=False),
        nn.BatchNorm2d(2 * width),
        nn.ReLU(True),
        nn.ConvTranspose2d(2 * width, 3, 4, 2, 1, bias=False),
        nn.Tanh(),
    )


def discriminator(width: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(3, width, 4, 2, 1, bias=False),
        nn.LeakyReLU(0.2, inplace=True),
        nn.Conv2d(width, 2 * width, 4, 2, 1, bias=False),
        nn.BatchNorm2d(2 * width),
        nn.LeakyReLU(0.2, inplace=True),
        nn.Conv2d(2 * width, 4 * width, 4, 2, 1, bias=False),
        nn.BatchNorm2d(4 * width),
        nn.LeakyReLU(0.2, inplace=True),
        nn.Conv2d(4 * width, 1, 4, 1, 0, bias=False),
    )


def main() -> None:
    torch.manual_seed(0)
    make, judge = generator(100, 64).cuda(), discriminator(64).cuda()
    make_optimizer = torch.optim.Adam(make.parameters(), lr=2e-4, betas=(0.5, 0.999))
    judge_optimizer = torch.optim.Adam(judge.parameters(), lr=2e-4, betas=(0.5, 0.999))
    ones, zeros = torch.ones(64, device="cuda"), torch.zeros(64, device="cuda")
    for step in range(3):
        real = torch.randn(64, 3, 32, 32).cuda()
        fake = make(torch.randn(64, 100, 1, 1, device="cuda"))
        judge_optimizer.zero_grad()
        loss_real = functional.binary_cross_entropy_with_logits(judge(real).flatten(), ones)
        loss_fake = functional.binary_cross_entropy_with_logits(judge(fake.detach()).flatten(), zeros)
        (loss_real + loss_fake).backward()
        judge_optimizer.step()
        make_optimizer.zero_grad()
        loss = functional.binary_cross_entropy_with_logits(judge(fake).flatten(), ones)
        loss.backward()
        make_optimizer.step()
        print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
