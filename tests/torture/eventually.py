"""Waiting for what is not reported by an event."""

import time


def eventually(condition, within):
    """The result of `condition` as soon as it is true, or after this many seconds."""
    until = time.monotonic() + within
    while not (seen := condition()) and time.monotonic() < until:
        time.sleep(0.02)
    return seen
