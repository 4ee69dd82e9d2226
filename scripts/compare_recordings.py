#!/usr/bin/python3
"""Compares two recordings from the start of the same phase on, and draws them over each other.

A worked example of kymo_recording.py: align, cut to a phase, compare medians. Whether a difference is more than noise
says `kymo diff`.
"""

import argparse
import math
import sys

import pandas

import kymo_recording


def compare(before, after, window):
    """(name, median of one, median of the other) of all that both have, the largest change first."""
    a, b = before.values(window), after.values(window)
    moving = set(before.moving()) | set(after.moving())
    rows = [(name, a[name].median(), b[name].median()) for name in a.columns if name in b.columns and name in moving]
    return sorted(rows, key=lambda row: -abs(change(row[1], row[2]) or 0))


def cut(run, phase):
    """That phase of a recording; of one with fewer than two rows the rows around it as well."""
    part = run.phase(phase)
    if len(part.rows) < 2:
        part = run.phase_around(phase)
        if len(part.rows) < 2:
            raise kymo_recording.RecordingError(f"compare {run.path}: its phase {phase} is too short to compare: "
                                                f"there are no two samples in it or around it")
        print(f"note: {run.path}: {phase} is shorter than the time from sample to sample: compared with the rows "
              "just before and after it", file=sys.stderr)
    return part


def window_for(runs, asked):
    """The window that was asked for, or what the shortest of these has, which is told."""
    shortest = min(run.duration_ns for run in runs)
    if shortest <= 0 or shortest >= pandas.Timedelta(asked).value:
        return asked
    print(f"note: rates are over windows of {shortest / 1e6:.3f} ms: no more is there to compare", file=sys.stderr)
    return f"{shortest}ns"


def change(a, b):
    """By which share b differs from a; None where one of them is not known."""
    if math.isnan(a) or math.isnan(b):
        return None
    if a == b:
        return 0.0
    return float("inf") if a == 0 else (b - a) / a


def percent(a, b):
    share = change(a, b)
    return "" if share is None else f"{100 * share:+8.1f} %"


def shown(value, pattern):
    """The value, or a dash where it is not known."""
    return "-" if math.isnan(value) else format(value, pattern)


def draw(runs, names, phase, window, path):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(len(names), 1, sharex=True, squeeze=False, figsize=(12, 2.6 * len(names)),
                                   constrained_layout=True)
    for (axis,), name in zip(axes, names):
        frame = kymo_recording.aligned(runs, name, phase, window=window)
        for line, color in zip(frame.columns, ("#0072b2", "#d55e00")):
            axis.plot(frame.index / 1e9, frame[line], color=color, label=line, linewidth=0.9)
        axis.set_title(name, loc="left")
        axis.grid(color="#dddddd", linewidth=0.6)
    axes[0][0].legend(loc="upper right")
    axes[-1][0].set_xlabel(f"{frame.index.name}, s")
    figure.savefig(path)
    pyplot.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("a", help="a recording, or a checkpoint: its first one")
    parser.add_argument("b", help="another")
    parser.add_argument("--phase", help="compare this phase alone (without: all rows)")
    parser.add_argument("--window", default="10ms", help="rates are over windows this long (10ms)")
    parser.add_argument("--picture", help="draw what changed most into this .png, .svg or .pdf")
    parser.add_argument("--rows", type=int, default=10, help="how many metrics to print (10)")
    arguments = parser.parse_args()
    try:
        runs = [kymo_recording.load(kymo_recording.find(path)[0]) for path in (arguments.a, arguments.b)]
        for run in runs:
            for note in run.notes:
                print(f"note: {run.path}: {note}", file=sys.stderr)
        compared = [cut(run, arguments.phase) for run in runs] if arguments.phase else runs
        window = window_for(compared, arguments.window)
        rows = compare(*compared, window)
        phases = kymo_recording.table(runs).filter(like="phase: ")
        if arguments.picture and rows:
            draw(compared, [row[0] for row in rows[:4]], arguments.phase, window, arguments.picture)
    except (kymo_recording.RecordingError, ValueError, OSError) as error:
        print(f"compare_recordings: {error}", file=sys.stderr)
        return 1
    for name in phases.columns:
        a, b = phases[name]
        print(f"{name:32} {shown(a / 1e6, '.3f'):>12} ms  {shown(b / 1e6, '.3f'):>12} ms  {percent(a, b)}".rstrip())
    for name, a, b in rows[: arguments.rows]:
        print(f"{name:32} {shown(a, ',.0f'):>15}  {shown(b, ',.0f'):>15}  {percent(a, b)}".rstrip())
    return 0


if __name__ == "__main__":
    kymo_recording.run_script(main)
