"""Trains with Lightning for six epochs, watched by early stopping and a checkpoint of the best model."""

import sys

import lightning
import torch
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Classifier(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 10))

    def training_step(self, batch: list[torch.Tensor], _index: int) -> torch.Tensor:
        loss = nn.functional.cross_entropy(self.net(batch[0]), batch[1])
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch: list[torch.Tensor], _index: int) -> None:
        self.log("val_loss", nn.functional.cross_entropy(self.net(batch[0]), batch[1]), prog_bar=True)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), lr=1e-3)


def main(folder: str) -> None:
    lightning.seed_everything(0)
    loaders = [
        DataLoader(TensorDataset(torch.randn(n, 784), torch.randint(0, 10, (n,))), batch_size=128)
        for n in (512, 256)
    ]
    trainer = lightning.Trainer(
        max_epochs=6,
        accelerator="gpu",
        devices=1,
        logger=False,
        enable_progress_bar=False,
        default_root_dir=folder,
        callbacks=[
            EarlyStopping("val_loss", patience=1, min_delta=1e-4),
            ModelCheckpoint(folder, monitor="val_loss"),
        ],
    )
    trainer.fit(Classifier(), *loaders)
    print("epochs", trainer.current_epoch, "val_loss", f"{trainer.callback_metrics['val_loss'].item():.4f}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "lightning-output")
