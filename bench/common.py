"""What the benchmarks written in Python share: their options, how they end, and their samples as JSON."""

import argparse
import json
import os
import pathlib
import signal
import statistics
import sys

from figures import interval_of_median

BUILD = pathlib.Path(os.environ.get("KYMO_BENCH_BUILD", "build/release"))
PROGRAMS = pathlib.Path(os.environ.get("KYMO_BENCH_PROGRAMS", "build/bench/bench"))
CRIU = os.environ.get("KYMO_BENCH_CRIU", "criu")


def parser_of(documentation):
    """With --json, which scripts/bench reads. SIGTERM ends the program as an error does: what it started is stopped."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    parser = argparse.ArgumentParser(description=documentation, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print only the samples, as JSON")
    return parser


def finish(options, headline, samples):
    """Prints the samples: as JSON, or the median of each with its interval."""
    if options.json:
        print(json.dumps({"samples": samples}))
        return
    print(f"{headline}; {os.cpu_count()} cores, kernel {os.uname().release}; medians with their 95 % interval")
    for name, values in samples.items():
        low, high = interval_of_median(values)
        print(f"{name:24}{statistics.median(values):16,.6g}   {low:,.6g} to {high:,.6g}")
