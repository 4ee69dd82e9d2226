"""Waiting for what gives no event."""

import time


def eventually(condition, within):
    """What `condition` says once it is true, or at the end of so many seconds."""
    until = time.monotonic() + within
    while not (seen := condition()) and time.monotonic() < until:
        time.sleep(0.02)
    return seen
