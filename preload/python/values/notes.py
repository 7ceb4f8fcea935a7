"""Says where the program read a value that nobody knew."""

import os
import sys

_TORCH = os.sep + "torch" + os.sep


def where():
    """The innermost line that is neither ours nor PyTorch's."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith("<") and _TORCH not in name:
            folder, file = os.path.split(name)
            return f"{os.path.basename(folder)}/{file}:{frame.f_lineno}"
        frame = frame.f_back
    return "an operation of PyTorch"


class Notes:
    LOOP = 20_000  # reads of one place without another in between

    def __init__(self, device):
        self._device = device
        self._last = None
        self._reads = 0

    def read(self, what, effect):
        place = where()
        self._device.invented(place.encode(), what.encode(), effect.encode())
        self._watch((place, what))

    def _watch(self, key):
        """A loop that waits for a value that is never computed ends by nobody's hand but the user's."""
        self._reads = self._reads + 1 if key == self._last else 1
        self._last = key
        if self._reads == self.LOOP:
            place, what = key
            sys.stderr.write(
                f"vramtrace: simulator: {place} has read {what} {self.LOOP:,} times in a row, and nothing "
                "computes it: a loop that waits for it does not end. Interrupt it, or end it after a number "
                "of turns.\n"
            )
