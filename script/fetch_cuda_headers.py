#!/usr/bin/env python3
"""Fetches NVIDIA's public headers into build/cuda-headers/<major>/include.

A build needs the declarations of the CUDA libraries, not the libraries: pip says where each wheel
lies, and only the header files are read out of it with range requests (about 20 MiB instead of
2 GiB a major). A server that refuses range requests gets a plain download instead.
"""

import argparse
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import urllib.request
import zipfile

WHEELS = {
    "13": [
        "nvidia-cuda-runtime==13.2.86",
        "nvidia-cuda-cupti==13.2.86",
        "nvidia-cuda-crt==13.2.86",
        "nvidia-cuda-cccl==13.2.86",
        "nvidia-nvml-dev==13.2.86",
        "nvidia-cublas==13.4.1.3",
        "nvidia-cusolver==12.2.0.11",
        "nvidia-cusparse==12.7.10.12",
        "nvidia-cufft==12.2.0.57",
        "nvidia-cudnn-cu13==9.26.0.51",
        "nvidia-nccl-cu13==2.30.7",
    ],
    "12": [
        "nvidia-cuda-runtime-cu12==12.8.90",
        "nvidia-cuda-cupti-cu12==12.8.90",
        "nvidia-cuda-nvcc-cu12==12.8.93",
        "nvidia-cuda-cccl-cu12==12.8.90",
        "nvidia-nvml-dev-cu12==12.8.90",
        "nvidia-cublas-cu12==12.8.4.1",
        "nvidia-cusolver-cu12==11.7.3.90",
        "nvidia-cusparse-cu12==12.5.8.93",
        "nvidia-cufft-cu12==11.3.3.83",
        "nvidia-cudnn-cu12==9.10.2.21",
        "nvidia-nccl-cu12==2.27.3",
    ],
}
HEADER_SUFFIXES = ("", ".h", ".hpp", ".cuh", ".inl")
READ_AHEAD = 1 << 18


class RangeNotSupported(Exception):
    """The server answers range requests with the whole file."""


class RemoteFile(io.RawIOBase):
    """A read-only seekable view of a file on a web server."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.url = url
        self.position = 0
        request = urllib.request.Request(url, method="HEAD")
        with urllib.request.urlopen(request, timeout=60) as answer:
            self.size = int(answer.headers["Content-Length"])

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self.position, io.SEEK_END: self.size}[whence]
        self.position = base + offset
        return self.position

    def readinto(self, buffer) -> int:
        if self.position >= self.size:
            return 0
        last = min(self.size, self.position + len(buffer)) - 1
        request = urllib.request.Request(self.url, headers={"Range": f"bytes={self.position}-{last}"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            if answer.status != 206:
                raise RangeNotSupported(self.url)
            data = answer.read()
        buffer[: len(data)] = data
        self.position += len(data)
        return len(data)


def pip(*arguments: str) -> str:
    command = [sys.executable, "-m", "pip", *arguments]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout


def wheel_urls(requirements: list[str]) -> list[str]:
    """Where the wheels lie, in the order of the requirements; one question to pip for all."""
    report = pip(
        "install", "--dry-run", "--ignore-installed", "--no-deps", "--quiet", "--report", "-",
        *requirements,
    )  # fmt: skip
    found = {
        (canonical(entry["metadata"]["name"]), entry["metadata"]["version"]): entry["download_info"]["url"]
        for entry in json.loads(report)["install"]
    }
    pairs = (requirement.split("==") for requirement in requirements)
    return [found[canonical(name), version] for name, version in pairs]


def canonical(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")


def extract_headers(wheel: zipfile.ZipFile, include: pathlib.Path) -> int:
    count = 0
    for name in wheel.namelist():
        _, found, relative = name.partition("/include/")
        path = pathlib.PurePosixPath(relative)
        if not found or name.endswith("/") or path.suffix not in HEADER_SUFFIXES:
            continue
        if path.is_absolute() or ".." in path.parts:
            raise ValueError(f"{wheel.filename}: unsafe path {name}")
        target = include / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(wheel.read(name))
        count += 1
    return count


def fetch(requirement: str, url: str, include: pathlib.Path) -> int:
    try:
        remote = io.BufferedReader(RemoteFile(url), READ_AHEAD)
        with zipfile.ZipFile(remote) as wheel:
            return extract_headers(wheel, include)
    except (RangeNotSupported, KeyError, OSError):
        with tempfile.TemporaryDirectory() as folder:
            pip("download", "--quiet", "--no-deps", "--dest", folder, requirement)
            (path,) = pathlib.Path(folder).iterdir()
            with zipfile.ZipFile(path) as wheel:
                return extract_headers(wheel, include)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path, help="usually build/cuda-headers")
    parser.add_argument("--major", choices=sorted(WHEELS), action="append")
    options = parser.parse_args()
    for major in options.major or sorted(WHEELS):
        include = options.folder / major / "include"
        stamp = options.folder / major / "wheels.txt"
        wanted = "\n".join(WHEELS[major]) + "\n"
        if stamp.exists() and stamp.read_text() == wanted:
            continue
        for requirement, url in zip(WHEELS[major], wheel_urls(WHEELS[major])):
            print(f"headers of {requirement}: ", end="", flush=True)
            print(f"{fetch(requirement, url, include)} files")
        stamp.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main())
