"""What the tests that make CRIU fail share: the programs, a way to run one, and a way to wait."""

import os
import subprocess
import time

CRIU = os.environ.get("KYMO_TEST_CRIU") or "criu"
PYTHON = "/usr/bin/python3"


def run(*words, **more):
    """Runs a program to its end, at most 90 seconds. Its output is in the result."""
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, timeout=90,
                          stdin=subprocess.DEVNULL, **more)


def until(condition, what):
    """Waits until the condition is true. After 30 seconds, raises an error that names `what`."""
    end = time.monotonic() + 30
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"never came: {what}")
        time.sleep(0.01)
