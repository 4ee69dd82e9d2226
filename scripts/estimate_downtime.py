#!/usr/bin/python3
"""Estimates how long a process would be frozen while its memory is moved, from a counter of its page writes.

An example of what kymo_recording.py can do: a counter as a curve over time. The amount of memory is given. The counter
of the recording says how much the process writes, in bytes or pages. A page that is written twice counts twice, so the
estimate is rather too high. The memory is moved in rounds while the process runs. Each round moves what was written
during the round before. Then the process is stopped, and the rest is moved.
"""

import argparse
import re
import sys

import numpy

import kymo_recording

PAGE_BYTES = 4096
UNITS = {"": 1, "B": 1, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
MOST_STARTS = 1000


def size(text):
    """Converts "512MiB" to a number of bytes."""
    found = re.fullmatch(r"([0-9.]+)\s*([a-z]*?)(?:/s)?", text.strip(), re.IGNORECASE)
    if not found or found[2].upper() not in UNITS:
        raise argparse.ArgumentTypeError(f"'{text}' is not a size: give a number and a unit, such as 512MiB")
    value = float(found[1]) * UNITS[found[2].upper()]
    if value <= 0:
        raise argparse.ArgumentTypeError(f"'{text}' is not a valid size: it must be above 0")
    return value


def is_curve(run, column):
    """Whether the column is a counter of bytes or pages. Without metadata the unit is unknown, and bytes are assumed."""
    return len(run.rows) > 1 and run.kind(column) == "counter" and run.unit(column) in ("", "bytes", "pages")


def can_be(run):
    names = [name for name in run.rows.columns if is_curve(run, name) and run.elapsed(name) > 0]
    return "its growing counters: " + (", ".join(names) or "none")


class Curve:
    """The bytes that were written since the start of the recording, at any time in it. Times are in seconds."""

    def __init__(self, run, column):
        if column not in run.rows.columns:
            raise kymo_recording.RecordingError(f"read {run.path}: it has no column {column}; {can_be(run)}")
        if not is_curve(run, column):
            raise kymo_recording.RecordingError(f"read {run.path}: {column} is not a counter of bytes or pages; "
                                                f"{can_be(run)}")
        values = run.rows[column].to_numpy()
        steps = numpy.where(values[1:] < values[:-1], 0, values[1:] - values[:-1]).astype("float64")
        factor = PAGE_BYTES if run.unit(column) == "pages" else 1
        self.times = run.rows.index.to_numpy() / 1e9
        self.written = numpy.concatenate([[0.0], numpy.cumsum(steps)]) * factor

    def between(self, begin, end):
        """The bytes that are written in this time. After the end of the recording, the average rate is assumed."""
        return self._at(end) - self._at(begin)

    def _at(self, time):
        beyond = max(0.0, time - self.times[-1])
        mean = self.written[-1] / max(self.times[-1] - self.times[0], 1e-9)
        return float(numpy.interp(time, self.times, self.written)) + beyond * mean


def stop_time(curve, start, memory, bandwidth, rounds):
    """How long the process stands still, in seconds, if the first of this many rounds begins at `start`."""
    left, at = memory, start
    for _ in range(rounds):
        done = at + left / bandwidth
        left, at = min(memory, curve.between(at, done)), done
    return left / bandwidth


def bandwidth_of(path):
    """How much a dump wrote per second while it was writing: the median over the windows in which it wrote."""
    run = kymo_recording.load(kymo_recording.find(path)[0])
    rates = run.rates().get("image_written_bytes")
    if rates is None or not rates.max() > 0:
        raise kymo_recording.RecordingError(f"read {run.path}: no image was written in it")
    return float(rates[rates >= rates.max() / 2].median())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("recording", help="the recording with the page writes, or a checkpoint (its first recording)")
    parser.add_argument("--column", required=True, help="the counter of the bytes or pages to which the process wrote")
    parser.add_argument("--memory", type=size, required=True, help="memory of the process, such as 512MiB")
    speed = parser.add_mutually_exclusive_group(required=True)
    speed.add_argument("--bandwidth", type=size, help="bytes that are moved per second, such as 1GiB")
    speed.add_argument("--dump", help="take the bandwidth from this recording of a dump")
    parser.add_argument("--rounds", type=int, default=3, help="largest number of rounds to estimate (default 3)")
    arguments = parser.parse_args()
    try:
        curve = Curve(kymo_recording.load(kymo_recording.find(arguments.recording)[0]), arguments.column)
        bandwidth = arguments.bandwidth or bandwidth_of(arguments.dump)
    except kymo_recording.RecordingError as error:
        print(f"estimate_downtime: {error}", file=sys.stderr)
        return 1
    print(f"{arguments.memory / 2**20:,.1f} MiB at {bandwidth / 2**20:,.1f} MiB/s; {arguments.column} writes "
          f"{curve.between(curve.times[0], curve.times[-1]) / (curve.times[-1] - curve.times[0]) / 2**20:,.1f} MiB/s")
    starts = numpy.linspace(curve.times[0], curve.times[-1], min(MOST_STARTS, len(curve.times)))
    print("rounds       median        worst         best  best begun at")
    for rounds in range(arguments.rounds + 1):
        times = numpy.array([stop_time(curve, start, arguments.memory, bandwidth, rounds) for start in starts])
        best = int(times.argmin())
        print(f"{rounds:6} {numpy.median(times) * 1e3:9.1f} ms {times.max() * 1e3:9.1f} ms {times[best] * 1e3:9.1f} ms "
              f"{starts[best]:11.3f} s")
    return 0


if __name__ == "__main__":
    kymo_recording.run_script(main)
