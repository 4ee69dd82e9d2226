#!/usr/bin/python3
"""Draws the totals and rates of a recording's counters, with the phases as bands.

An example of what kymo_recording.py can do: load a recording, compute rates, find the phases, draw.
"""

import argparse
import sys

import kymo_recording


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("recording", help="a recording (.tsv), or a checkpoint (its first recording)")
    parser.add_argument("picture", help="the picture to write: .png, .svg or .pdf")
    parser.add_argument("--column", action="append", help="column to draw (may be repeated; "
                        "default: the columns of bytes and pages)")
    parser.add_argument("--window", default="10ms", help="length of the windows of the rates (default 10ms)")
    arguments = parser.parse_args()
    try:
        run = kymo_recording.load(kymo_recording.find(arguments.recording)[0])
        run.plot(arguments.picture, arguments.column, arguments.window)
    except (kymo_recording.RecordingError, ValueError) as error:
        print(f"plot_recording: {error}", file=sys.stderr)
        return 1
    for note in run.notes:
        print(f"note: {note}", file=sys.stderr)
    for phase in run.phases().itertuples():
        print(f"{phase.name:24} {(phase.end_ns - phase.begin_ns) / 1e6:10.3f} ms")
    rates = run.rates(arguments.window)
    for name in (name for name in run.moving() if name in rates):
        print(f"{name:24} {run.elapsed(name):>14,} {run.unit(name)}, highest {rates[name].max():,.0f} a second")
    return 0


if __name__ == "__main__":
    kymo_recording.run_script(main)
