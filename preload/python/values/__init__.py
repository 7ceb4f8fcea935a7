"""Values on the simulated device: see README.md."""

import atexit
import os


def install(torch):
    from _vramtrace.values import device

    memory = device.find()
    if memory is None or os.environ.get("VRAMTRACE_SIM_VALUES") == "off":
        return
    from _vramtrace.values import shadow

    made, libraries = shadow.install(memory)
    kept.extend((made, libraries))
    atexit.register(made.report)


kept = []
