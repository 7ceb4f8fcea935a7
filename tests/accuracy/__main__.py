"""script/accuracy: how right vramtrace is."""

import sys

from script.figures import main
from tests.accuracy import device
from tests.accuracy.allocator import measure as allocator
from tests.accuracy.attribution import measure as attribution
from tests.accuracy.batch import measure as batch
from tests.accuracy.diagnoses import measure as diagnoses
from tests.accuracy.estimate import measure as estimate
from tests.accuracy.techniques import measure as techniques

MEASUREMENTS = {
    "attribution": attribution.measure,
    "allocator": allocator.measure,
    "batch": batch.measure,
    "techniques": techniques.measure,
    "estimate": estimate.measure,
    "diagnoses": diagnoses.measure,
    "device": device.measure,
}
NOT_BUILT = {
    "published": "there is no forecast yet to score published cases with",
}

if __name__ == "__main__":
    sys.exit(main("script/accuracy", MEASUREMENTS, NOT_BUILT))
