"""Trains and validates a small YOLO of ultralytics from its configuration, on images made here."""

import pathlib
import sys

import cv2
import numpy as np
from ultralytics import YOLO


def dataset(folder: pathlib.Path) -> pathlib.Path:
    generator = np.random.default_rng(0)
    for part in ("train", "val"):
        (folder / part / "images").mkdir(parents=True, exist_ok=True)
        (folder / part / "labels").mkdir(parents=True, exist_ok=True)
        for i in range(8):
            image = generator.integers(0, 255, (96, 96, 3), dtype=np.uint8)
            cv2.imwrite(str(folder / part / "images" / f"{i}.jpg"), image)
            boxes = [f"{k % 2} {0.3 + 0.1 * k} 0.5 0.3 0.3" for k in range(3)]
            (folder / part / "labels" / f"{i}.txt").write_text("\n".join(boxes))
    description = folder / "data.yaml"
    description.write_text(f"path: {folder}\ntrain: train/images\nval: val/images\nnames: [a, b]\n")
    return description


def main(folder: str) -> None:
    path = pathlib.Path(folder).resolve()
    model = YOLO("yolov8n.yaml")
    model.train(
        data=str(dataset(path)),
        epochs=1,
        imgsz=96,
        batch=4,
        workers=0,
        device=0,
        amp=False,
        plots=False,
        project=str(path / "runs"),
        exist_ok=True,
    )
    print("trained and validated")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "yolo")
