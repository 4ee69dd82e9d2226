"""Draws recordings with matplotlib, for Recording.plot() of kymo_recording.py."""

import sys

import matplotlib
import numpy
from kymo_recording import RecordingError

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402: after the line above

MOST_GAPS_DRAWN = 500  # the longest ones; shorter ones would not be visible
MOST_COLUMNS_DRAWN = 12  # with more, the picture would be too high for any screen


def _part_of_histogram(run):
    """The columns for which quantile() is more useful: buckets, sums and counts of histograms."""
    names = set(run.histograms())
    return {name for name in run.rows.columns if name.partition("[")[0] in names} | {
        f"{name}{ending}" for name in names for ending in ("_sum", "_count")}


def _at_most(run, names):
    """The names of the columns to draw, in their order, and of those that are left out."""
    changes = (numpy.diff(run.rows[names].to_numpy(), axis=0) != 0).sum(axis=0)
    most = {names[i] for i in numpy.argsort(-changes, kind="stable")[:MOST_COLUMNS_DRAWN]}
    return [name for name in names if name in most], [name for name in names if name not in most]


def draw(run, path, names, window):
    """Draws totals and rates of these counters into a file (Recording.plot())."""
    left_out = []
    if names is None:
        moving = [name for name in run.moving() if run.kind(name) == "counter"]
        named = [name for name in moving if run.unit(name) in ("bytes", "pages")]
        names = [name for name in named or moving if not name.startswith("profiler_")] or moving
        names, left_out = _at_most(run, [name for name in names if name not in _part_of_histogram(run)] or names)
    if not names:
        raise RecordingError(f"draw {path}: no counter of {run.path} moved")
    unknown = [name for name in names if name not in run.rows.columns]
    if unknown:
        raise RecordingError(f"draw {path}: {run.path} has no column {', '.join(unknown)}")
    rates = run.rates(window)
    figure, axes = pyplot.subplots(2 * len(names), 1, sharex=True, squeeze=False,
                                   figsize=(12, 2.6 * 2 * len(names)), constrained_layout=True)
    for i, name in enumerate(names):
        unit = run.unit(name) or "count"
        total, rate = axes[2 * i][0], axes[2 * i + 1][0]
        total.plot(run.rows.index / 1e9, _broken(run, run.rows[name]), color="#0072b2")
        total.set_ylabel(unit)
        total.set_title(name, loc="left")
        rate.plot(rates.index / 1e9, rates[name], color="#d55e00", drawstyle="steps-pre")
        rate.set_ylabel(f"{unit} per second")
        for axis in (total, rate):
            _decorate(run, axis)
    axes[-1][0].set_xlabel("time in the recording, s")
    if left_out:
        line = f"{len(left_out)} more counters are left out; name those to draw: {', '.join(left_out)}"
        print(f"{path}: {line}", file=sys.stderr)
        figure.suptitle(line[:120], fontsize=9)
    try:
        figure.savefig(path)
    except (OSError, ValueError) as error:
        raise RecordingError(f"draw {path}: {error}") from error
    finally:
        pyplot.close(figure)


def _broken(run, values):
    """The values as floats. Each gap has a NaN, so that no line is drawn across it."""
    values = values.astype("float64").to_numpy()
    times = run.rows.index.to_numpy()
    after = numpy.searchsorted(times, run.gaps["start_ns"].to_numpy(dtype="uint64"))
    values[after[after < len(values)]] = numpy.nan
    return values


def _decorate(run, axis):
    axis.grid(color="#dddddd", linewidth=0.6)
    axis.set_ylim(bottom=0)
    for i, phase in enumerate(run.phases().itertuples()):
        axis.axvspan(phase.begin_ns / 1e9, phase.end_ns / 1e9, color=f"C{i % 10}", alpha=0.10, linewidth=0)
        axis.annotate(phase.name, (phase.begin_ns / 1e9, 1), xycoords=("data", "axes fraction"),
                      rotation=90, va="top", ha="left", fontsize=7, color="#444444")
    lengths = (run.gaps["end_ns"] - run.gaps["start_ns"]).sort_values(ascending=False)
    for gap in run.gaps.loc[lengths.index[:MOST_GAPS_DRAWN]].itertuples():
        axis.axvspan(gap.start_ns / 1e9, gap.end_ns / 1e9, color="#999999", alpha=0.4, linewidth=0)
