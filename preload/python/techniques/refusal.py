"""How a technique that cannot be applied ends the program."""

import sys

EXIT_REFUSED = 2


class Refusal(Exception):
    """Its text is the reason, one clause."""


def refuse(key, why):
    sys.stderr.write(f"vramtrace: {key} cannot be applied to this program: {why}\n")
    sys.stderr.flush()
    raise SystemExit(EXIT_REFUSED)


def number(options, name, default):
    text = options.get(name, str(default))
    if not text.isdigit() or int(text) == 0:
        raise Refusal(f'{name} is "{text}"; it must be a number above 0')
    return int(text)
