"""What the benchmarks in Python share: options, the end of a benchmark, and output of samples as JSON."""

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from figures import interval_of_median

BUILD = pathlib.Path(os.environ.get("KYMO_BENCH_BUILD", "build/release"))
PROGRAMS = pathlib.Path(os.environ.get("KYMO_BENCH_PROGRAMS", "build/bench/bench"))
CRIU = os.environ.get("KYMO_BENCH_CRIU", "criu")


def parser_of(documentation):
    """Adds --json, which scripts/bench uses. SIGTERM ends the program like an error, so that it stops what it has
    started."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    parser = argparse.ArgumentParser(description=documentation, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print only the samples, as JSON")
    return parser


@contextlib.contextmanager
def scratch_folder(beside=None):
    """A new folder in `beside` (by default, in the folder for temporary files). It is removed at the end."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="kymo-bench-", dir=beside))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def wait_until(condition, what, seconds=60):
    """Ends the program with `what` if the condition does not become true in time."""
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            sys.exit(f"{pathlib.Path(sys.argv[0]).stem}: {what}")
        time.sleep(0.05)


class Kymod:
    """Runs kymod with its state in `folder`, which must exist. `flags` are added to its command line, and `before` is a
    command that runs it, such as `nice`."""

    def __init__(self, build, criu, folder, *flags, before=()):
        tools = build.resolve() / "tools"
        self.kymo = [tools / "kymo/kymo", "--socket", folder / "kymod.sock"]
        self.log = folder / "kymod.log"
        self.process = subprocess.Popen(
            [*before, tools / "kymod/kymod", "--socket", folder / "kymod.sock", "--state-dir", folder / "state", "--http", "127.0.0.1:0",
             "--criu", criu, *flags], stdout=subprocess.DEVNULL, stderr=self.log.open("w"))
        try:
            wait_until(self.is_ready, "kymod does not start")
        except SystemExit:
            self.process.kill()
            raise

    def is_ready(self):
        if self.process.poll() is not None:
            sys.exit(f"{pathlib.Path(sys.argv[0]).stem}: kymod has ended:\n{self.log.read_text()}")
        return "ready: socket" in self.log.read_text()

    def run_kymo(self, *words):
        """Runs kymo with these words, and returns its output. It must succeed."""
        done = subprocess.run([*self.kymo, *words], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{pathlib.Path(sys.argv[0]).stem}: kymo {words[0]} failed: {done.stderr}")
        return done.stdout

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            sys.exit(f"{pathlib.Path(sys.argv[0]).stem}: kymod did not stop within a minute")


def finish(options, headline, samples):
    """Prints the samples: as JSON, or the median of each with its interval."""
    if options.json:
        print(json.dumps({"samples": samples}))
        return
    print(f"{headline}; {os.cpu_count()} cores, kernel {os.uname().release}; medians with their 95 % interval")
    for name, values in samples.items():
        low, high = interval_of_median(values)
        print(f"{name:24}{statistics.median(values):16,.6g}   {low:,.6g} to {high:,.6g}")
