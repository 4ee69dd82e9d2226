#!/usr/bin/python3
"""Finds the slowest of many recordings, and the phase that made it slow.

An example of what kymo_recording.py can do: many recordings at once. It reads only their metadata, so thousands take
only seconds.
"""

import argparse
import sys

import kymo_recording


def spans(runs, begin, end):
    """How long each run took, in ns: from the first mark to the last, or between the two named marks."""
    for run in runs:
        marks = run.marks
        if marks.empty:
            yield run.duration_ns
        else:
            first = run.mark(begin) if begin else int(marks["at_ns"].iloc[0])
            last = run.mark(end) if end else int(marks["at_ns"].iloc[-1])
            yield last - first


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("recordings", nargs="+", help="recordings, checkpoints, folders of recordings")
    parser.add_argument("--from", dest="begin", help="mark at which the time begins (default: the first)")
    parser.add_argument("--to", dest="end", help="mark at which the time ends (default: the last)")
    parser.add_argument("--request", help="use only recordings of this request: dump or restore")
    parser.add_argument("--rows", type=int, default=5, help="number of recordings to print (default 5)")
    arguments = parser.parse_args()
    try:
        runs = kymo_recording.load_all(arguments.recordings, rows=False)
        runs = [run for run in runs if arguments.request in (None, run.about.get("request"))]
        for run in runs:
            if not run.finished:  # its duration is not known yet
                print(f"find_slowest: {run.path} is left out: it is unfinished", file=sys.stderr)
        runs = [run for run in runs if run.finished]
        if not runs:
            raise kymo_recording.RecordingError(f"find the slowest: no finished recording is of a {arguments.request}")
        table = kymo_recording.table(runs)
        table["took_ns"] = list(spans(runs, arguments.begin, arguments.end))
    except kymo_recording.RecordingError as error:
        print(f"find_slowest: {error}", file=sys.stderr)
        return 1
    table = table.sort_values("took_ns", ascending=False, kind="stable").reset_index(drop=True)
    middle = table["took_ns"].median()
    print(f"{len(table)} recordings, median {middle / 1e6:.3f} ms")
    for row in table.head(arguments.rows).itertuples():
        print(f"{row.took_ns / 1e6:12.3f} ms  {row.took_ns / max(middle, 1):6.2f} x  {row.path}")
    phases = table.filter(like="phase: ").fillna(0)
    # The last phase has no duration, because it ends with the rows, which were not read.
    over = (phases.iloc[0] - phases.median()).sort_values(ascending=False, kind="stable")
    for name, ns in over.head(3).items():
        if ns > 0:
            print(f"{name} of the slowest took {ns / 1e6:.3f} ms more than the median")
    return 0


if __name__ == "__main__":
    kymo_recording.run_script(main)
