"""The simulated device's memory, called by name (preload/simulator/core/values.h)."""

import ctypes

NOT_LIVE, INVENTED, KNOWN = -1, 0, 1

_u64, _int, _text = ctypes.c_uint64, ctypes.c_int, ctypes.c_char_p
_FUNCTIONS = {
    "knowledge": (_int, _u64, _u64),
    "open": (_int, _u64, _u64),
    "written": (None, _u64, _u64, _int),
    "expect_count": (None, _u64, _int),
    "forget_counts": (None,),
    "invented": (None, _text, _text, _text),
    "shadow_cost": (None, _u64, _u64, _u64),
}


class Device:
    """One attribute a function."""

    def __init__(self, library):
        for name, (result, *arguments) in _FUNCTIONS.items():
            function = getattr(library, "vramtrace_sim_" + name)
            function.restype = result
            function.argtypes = arguments
            setattr(self, name, function)


def find():
    """None in a process without the simulator. PyDLL: the calls are shorter than giving up the GIL."""
    try:
        return Device(ctypes.PyDLL(None))
    except (AttributeError, OSError):
        return None
