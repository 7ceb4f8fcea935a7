"""`vramtrace doctor` on simulated cards that pretend: each check finds what it is for."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from cli_runs import Command


@pytest.fixture
def vramtrace(build, tmp_path: Path) -> Command:
    return Command(build.folder, tmp_path)


def doctor(vramtrace: Command, gpu: str, scenario: str, *words: str, **environment: str) -> dict:
    """Card 0's and the machine's checks by key."""
    file = vramtrace.folder / "scenario.txt"
    file.write_text(scenario)
    ended = vramtrace(
        *("doctor", "--gpu", gpu, "--scenario", file, "--probe", "native", "--format", "json", "-q"),
        *("--seconds", "4"),
        *words,
        **environment,
    )
    assert ended.status == 0, ended.errors
    report = json.loads(ended.output)
    assert report["simulated"]
    return {row["key"]: row for row in report["checks"] if row.get("card", 0) == 0}


def test_a_good_card_is_good(vramtrace: Command) -> None:
    rows = doctor(vramtrace, "rtx4090", "clock = 1")
    for key in ("name", "memory", "tenants", "multiprocessors", "clocks", "pcie"):
        assert rows[key]["status"] == "good", rows[key]
    for key in ("fp32", "tf32", "bf16", "bandwidth", "host_to_device"):
        assert rows[key]["status"] == "good", rows[key]
    assert "82.6 TFLOPS" in rows["fp32"]["found"]
    for key in ("links", "all_reduce", "scaling"):
        assert rows[key] == {"key": key, "status": "not_checked", "found": "one card"}
    assert rows["network"]["status"] in ("good", "not_checked")
    assert "--data" in rows["data_sequential"]["found"]
    assert rows["versions"]["status"] == "not_checked"
    assert rows["container"]["status"] in ("good", "off")
    assert rows["host_memory"]["status"] in ("good", "off")
    assert rows["shared_memory"]["status"] in ("good", "off")


def test_times_mean_nothing_without_a_clock(vramtrace: Command) -> None:
    rows = doctor(vramtrace, "rtx4090", "")
    for key in ("fp32", "tf32", "bf16", "bandwidth", "host_to_device"):
        assert rows[key]["status"] == "not_checked"
        assert "times mean nothing" in rows[key]["found"]
    assert rows["resnet50"]["status"] == "not_checked"


# What the card pretends, the card, the check, and what the cause or the figure says.
PRETENDED = [
    ("multiprocessors = 118\nclock = 1", "rtx4090", "multiprocessors", "118 of 128, 8 % fewer"),
    ("mig = 1g.10gb", "a100-80-sxm", "memory", "a MIG slice, 1g.10gb"),
    ("mig = 1g.10gb", "a100-80-sxm", "multiprocessors", "a MIG slice"),
    ("limiter = 8GiB", "rtx4090", "memory", "a limiter between program and driver"),
    ("ecc = 1", "rtx-a6000", "memory", "ECC is on"),
    ("vgpu = 1\nlimiter = 10GiB", "a100-40-sxm", "memory", "a virtual GPU"),
    ("other_tenant = 6GiB", "rtx4090", "tenants", "holding 6.00 GiB"),
    ("pcie_width = 8", "rtx4090", "pcie", "fewer lanes"),
    ("pcie_width = 8\nclock = 1", "rtx4090", "host_to_device", "fewer lanes than the card"),
    ("throttle = sw_thermal\ntemperature = 92", "rtx4090", "clocks", "lowered by heat"),
    ("power_limit = 300", "rtx4090", "clocks", "power limit is set below"),
    ("clock = 0.7\nthrottle = hw_thermal", "rtx4090", "bf16", "lowered by heat"),
    ("clock = 0.6", "rtx4090", "fp32", "not clear"),
    ("clock = 0.6", "rtx4090", "tf32", "not clear"),
    ("clock = 1\nbandwidth = 0.5", "rtx4090", "bandwidth", "50 % of the catalogue"),
    ("clock = 1\nhost_link = 0.3", "rtx4090", "host_to_device", "slower generation"),
    ("name = NVIDIA GeForce RTX 4090 D", "rtx4090", "name", "sold as NVIDIA GeForce RTX 4090"),
]


@pytest.mark.parametrize(("scenario", "gpu", "key", "says"), PRETENDED)
def test_what_a_card_pretends_is_found(
    vramtrace: Command, scenario: str, gpu: str, key: str, says: str
) -> None:
    row = doctor(vramtrace, gpu, scenario, "--sold-as", gpu)[key]
    assert row["status"] == "off", row
    assert says in row["cause"] + row["found"], row
    assert row["remedy"]


def test_a_limiters_own_sign_is_named(vramtrace: Command) -> None:
    row = doctor(vramtrace, "rtx4090", "limiter = 8GiB", CUDA_DEVICE_MEMORY_LIMIT_0="8g")["memory"]
    assert row["cause"] == "a limiter (CUDA_DEVICE_MEMORY_LIMIT_0=8g)"


def test_cards_that_should_have_nvlink(vramtrace: Command) -> None:
    off = doctor(vramtrace, "h100-sxm", "nvlinks = 0", "--count", "4")["links"]
    assert off["status"] == "off"
    assert "NVLink 900" in off["cause"]
    assert doctor(vramtrace, "h100-sxm", "nvlinks = 18", "--count", "4")["links"]["status"] == "good"
    assert doctor(vramtrace, "rtx4090", "", "--count", "4")["links"]["found"] == "PCIe only"


def test_without_nvml_the_rest_is_checked(vramtrace: Command) -> None:
    rows = doctor(vramtrace, "rtx4090", "nvml = no_permission\nclock = 1")
    assert rows["memory"]["status"] == "good"
    assert rows["bf16"]["status"] == "good"
    for key in ("clocks", "pcie"):
        assert rows[key]["status"] == "not_checked"
        assert "Insufficient Permissions" in rows[key]["found"]


@pytest.mark.skipif(Path("/proc/driver/nvidia").exists(), reason="there is a driver")
def test_no_card_is_no_failure_unless_strict(vramtrace: Command) -> None:
    words = ("doctor", "--probe", "native", "--format", "json", "--python", "/no/such/python")
    ended = vramtrace(*words)
    assert ended.status == 0, ended.errors
    rows = {row["key"]: row for row in json.loads(ended.output)["checks"]}
    assert rows["memory"]["status"] == "not_checked"
    assert rows["memory"]["found"]
    assert rows["host_memory"]["status"] == "good"
    assert vramtrace(*words, "--strict").status == 1
    assert vramtrace("doctor", "--gpu", "rtx4900").status == 2
    assert vramtrace("doctor", "--sold-as", "rtx4900").status == 2
    assert vramtrace("doctor", "--seconds", "0").status == 2


def test_the_data_folder_is_read(vramtrace: Command) -> None:
    data = vramtrace.folder / "data"
    data.mkdir()
    (data / "large.bin").write_bytes(os.urandom(8 << 20))
    ended = vramtrace("doctor", "--probe", "none", "--seconds", "4", "--data", data, "--format", "json", "-q")
    rows = {row["key"]: row for row in json.loads(ended.output)["checks"]}
    assert "GB/s from" in rows["data_sequential"]["found"]
    assert "reads a second of 64 KiB" in rows["data_random"]["found"]
    empty = vramtrace(
        *("doctor", "--probe", "none", "--seconds", "2", "--data", vramtrace.folder / "none"),
        *("--format", "json", "-q"),
    )
    rows = {row["key"]: row for row in json.loads(empty.output)["checks"]}
    assert rows["data_random"] == {
        "key": "data_random",
        "status": "not_checked",
        "found": f"{vramtrace.folder}/none: no such folder",
    }


def test_a_probe_that_hangs_is_ended(vramtrace: Command) -> None:
    hanging = vramtrace.folder / "python"
    hanging.write_text('#!/bin/sh\necho \'{"what": "card", "index": 0, "name": "NVIDIA L4"}\'\nsleep 300\n')
    hanging.chmod(0o755)
    ended = vramtrace(
        *("doctor", "--probe", "torch", "--python", hanging, "--seconds", "1", "--format", "json", "-q")
    )
    rows = {row["key"]: row for row in json.loads(ended.output)["checks"]}
    assert ended.status == 0
    assert "did not answer in time" in rows["fp32"]["found"]


def test_pytorch_measures(vramtrace: Command) -> None:
    """One run with the real PyTorch: every line of its probe is understood."""
    scenario = vramtrace.folder / "scenario.txt"
    scenario.write_text("clock = 1\n")
    ended = vramtrace(
        *("doctor", "--gpu", "rtx4090", "--scenario", scenario, "--format", "json"),
        *("--probe", "torch", "--python", sys.executable),
    )
    report = json.loads(ended.output)
    rows = {row["key"]: row for row in report["checks"]}
    assert report["measured_by"] == "torch", ended.errors
    for key in ("memory", "multiprocessors", "fp32", "bf16", "bandwidth", "host_to_device", "versions"):
        assert rows[key]["status"] == "good", rows[key]
    assert "PyTorch" in rows["versions"]["found"]
    assert any("card 0: bf16" in line for line in ended.own_lines())
