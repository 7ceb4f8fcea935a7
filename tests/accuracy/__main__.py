"""script/accuracy: how right vramtrace is."""

import argparse
import sys
from pathlib import Path

from script.figures import main
from tests.accuracy import device
from tests.accuracy.allocator import measure as allocator
from tests.accuracy.attribution import measure as attribution
from tests.accuracy.batch import measure as batch
from tests.accuracy.diagnoses import measure as diagnoses
from tests.accuracy.estimate import measure as estimate
from tests.accuracy.published import measure as published
from tests.accuracy.releases import measure as releases
from tests.accuracy.techniques import measure as techniques

OPTIONS = argparse.ArgumentParser(add_help=False)
OPTIONS.add_argument(
    "--cases", type=Path, metavar="FILE", help="published: cases of one's own, columns as in cases.csv"
)

MEASUREMENTS = {
    "attribution": attribution.measure,
    "allocator": allocator.measure,
    "batch": batch.measure,
    "techniques": techniques.measure,
    "estimate": estimate.measure,
    "diagnoses": diagnoses.measure,
    "device": device.measure,
    "releases": releases.measure,
    "published": lambda: published.measure(OPTIONS.parse_known_args()[0].cases),
}

if __name__ == "__main__":
    sys.exit(main("script/accuracy", MEASUREMENTS, {}, OPTIONS))
