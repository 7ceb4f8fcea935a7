"""Fixtures of the runs on the simulated device."""

import pytest
from recording import Build, default_build


@pytest.fixture(scope="session")
def build() -> Build:
    return default_build()
