"""script/bench: what vramtrace costs."""

import sys

from script.figures import main
from tests.bench import analyzer, build, recorder, simulator

MEASUREMENTS = {
    "recorder": recorder.measure,
    "simulator": simulator.measure,
    "analyzer": analyzer.measure,
    "build": build.measure,
}
NOT_BUILT = {"viewer": "there is no viewer yet"}

if __name__ == "__main__":
    sys.exit(main("script/bench", MEASUREMENTS, NOT_BUILT))
