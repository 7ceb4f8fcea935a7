"""Trains a small UNet of diffusers to predict noise, then samples from it."""

import torch
from diffusers import DDPMScheduler, UNet2DModel


def main() -> None:
    torch.manual_seed(0)
    model = UNet2DModel(
        sample_size=32,
        in_channels=3,
        out_channels=3,
        block_out_channels=(32, 64),
        layers_per_block=1,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
        norm_num_groups=8,
    ).to("cuda")
    scheduler = DDPMScheduler(num_train_timesteps=100)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for step in range(3):
        images = torch.randn(4, 3, 32, 32, device="cuda")
        noise = torch.randn_like(images)
        times = torch.randint(0, 100, (4,), device="cuda")
        loss = torch.nn.functional.mse_loss(
            model(scheduler.add_noise(images, noise, times), times).sample, noise
        )
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"step {step} loss {loss.item():.4f}")
    scheduler.set_timesteps(4)
    sample = torch.randn(1, 3, 32, 32, device="cuda")
    with torch.no_grad():
        for time in scheduler.timesteps:
            sample = scheduler.step(model(sample, time).sample, time, sample).prev_sample
    print("sampled", tuple(sample.shape), bool(sample.isfinite().all()))


if __name__ == "__main__":
    main()
