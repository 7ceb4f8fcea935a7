"""script/bench: what vramtrace costs."""

import sys

from script.figures import main
from tests.bench import analyzer, build, recorder, simulator, viewer

MEASUREMENTS = {
    "recorder": recorder.measure,
    "simulator": simulator.measure,
    "analyzer": analyzer.measure,
    "viewer": viewer.measure,
    "build": build.measure,
}
NOT_BUILT: dict[str, str] = {}

if __name__ == "__main__":
    sys.exit(main("script/bench", MEASUREMENTS, NOT_BUILT))
