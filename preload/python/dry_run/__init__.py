"""A dry run ends by itself: after VRAMTRACE_DRY_RUN_STEPS optimizer steps, or with "auto" when the peak has
not risen for QUIET_STEPS whole ones.

How the process ends. The step's own hook raises SystemExit(0), so that `with` blocks, `finally` clauses and
atexit handlers run as at any orderly end. A program may catch that, or hang while it cleans up: the next step
that ends, or a timer of VRAMTRACE_DRY_RUN_GRACE seconds (30), flushes the standard streams, closes the trace
and calls os._exit(0). The exit status is 0 in every case."""

import os
import sys
import threading

from _vramtrace import native
from _vramtrace.labels import steps

QUIET_STEPS = 3
DEFAULT_GRACE = 30.0


class Stop:
    def __init__(self, limit):
        self.limit = limit  # None: auto
        self.peak = (0, 0)
        self.quiet = 0
        self.stopped = False
        self.saved = False

    def after_step(self, number):
        if self.stopped:
            end_now()
        peak = (native.peak_allocated(), native.peak_reserved())
        risen = peak[0] > self.peak[0] or peak[1] > self.peak[1]
        self.quiet = 0 if risen else self.quiet + 1
        self.peak = peak
        done = number + 1 >= self.limit if self.limit is not None else self.quiet >= QUIET_STEPS
        if done:
            self.stop(number + 1)

    def stop(self, count):
        self.stopped = True
        unseen = [] if native.seen_evaluation() else ["evaluation"]
        if not self.saved:
            unseen.append("saving")
        why = "as asked" if self.limit is not None else f"its peak has not risen for {QUIET_STEPS}"
        plural = "" if count == 1 else "s"
        text = f"vramtrace: dry run ended after {count} step{plural} ({why})"
        if unseen:
            text += "; not seen: " + ", ".join(unseen)
        sys.stderr.write(text + "\n")
        start_timer()
        raise SystemExit(0)

    def watch_saving(self, torch):
        """torch.save is the sign of the save phase. Only a dry run has this wrapper."""
        save = torch.save

        def noted(*arguments, **keywords):
            self.saved = True
            return save(*arguments, **keywords)

        noted.__name__, noted.__qualname__, noted.__doc__ = save.__name__, save.__qualname__, save.__doc__
        noted.__module__, noted.__wrapped__ = save.__module__, save
        torch.save = noted


def end_now():
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass
    native.end_recording()
    os._exit(0)


def start_timer():
    try:
        grace = float(os.environ.get("VRAMTRACE_DRY_RUN_GRACE", DEFAULT_GRACE))
    except ValueError:
        grace = DEFAULT_GRACE
    timer = threading.Timer(grace, end_now)
    timer.daemon = True
    timer.start()


def read_limit():
    text = os.environ["VRAMTRACE_DRY_RUN_STEPS"]
    if text == "auto":
        return None
    if text.isdigit() and int(text) > 0:
        return int(text)
    sys.stderr.write(
        f'vramtrace: VRAMTRACE_DRY_RUN_STEPS is "{text}"; it must be auto or a number of steps\n'
    )
    return None


def install(torch):
    stop = Stop(read_limit())
    stop.watch_saving(torch)
    steps.after_step.append(stop.after_step)
