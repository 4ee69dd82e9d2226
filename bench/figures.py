"""Turns samples into figures: medians with 95 % intervals, ratios to a rival in the same run, and goals.

A benchmark returns samples: {"name": [value of each repetition]}. Values of two names with the same index form a pair,
because they were measured in turns. So a ratio is the median of the paired ratios.
"""

import dataclasses
import math
import random
import statistics


@dataclasses.dataclass(frozen=True)
class Goal:
    """What the median of a figure ("value"), or of its ratio to its rival ("ratio"), must reach."""
    of: str = "value"
    at_most: float | None = None
    at_least: float | None = None

    def reached_by(self, value):
        return value <= self.at_most if self.at_most is not None else value >= self.at_least


@dataclasses.dataclass(frozen=True)
class Figure:
    """One line of a table. `unit` is one of UNITS. `share` shows the ratio as a difference in percent."""
    name: str
    text: str
    unit: str
    beside: str = ""
    goal: Goal | None = None
    share: bool = False


def interval_of_median(values, draws=1000):
    """The 95 % interval of the median, by bootstrap. With very few values it is from the lowest to the highest value."""
    lots = random.Random(1)
    medians = sorted(statistics.median(lots.choices(values, k=len(values))) for _ in range(draws))
    return medians[int(draws * 0.025)], medians[int(draws * 0.975)]


def summary_of(values):
    low, high = interval_of_median(values)
    rounded = [float(f"{value:.5g}") for value in (statistics.median(values), low, high)]
    return {**dict(zip(("median", "low", "high"), rounded)), "runs": len(values)}


def paired(left, right, operation):
    """The operation on each pair of values. Raises an error if the numbers of values differ."""
    return [operation(a, b) for a, b in zip(left, right, strict=True)]


def ratio_of(values, rival):
    return paired(values, rival, lambda a, b: a / b)


def measure(figures, samples):
    """{name: entry of the result file}, for each figure and for each rival that is not a figure itself."""
    texts = {figure.name for figure in figures}
    measured = {}
    for figure in figures:
        entry = {"text": figure.text, "unit": figure.unit, **summary_of(samples[figure.name])}
        if figure.beside:
            assert figure.beside in texts, figure.beside
            ratio = summary_of(ratio_of(samples[figure.name], samples[figure.beside]))
            entry["beside"] = {"name": figure.beside, **ratio, "share": figure.share}
        if figure.goal:
            reached = entry["beside"] if figure.goal.of == "ratio" else entry
            limits = {key: value for key, value in dataclasses.asdict(figure.goal).items() if value is not None}
            entry["goal"] = {**limits, "met": figure.goal.reached_by(reached["median"]),
                             "certain": figure.goal.reached_by(reached["low"]) == figure.goal.reached_by(reached["high"])}
        measured[figure.name] = entry
    return measured


# --- how a value is told -------------------------------------------------------------------------

SCALES = {"ns": [("ns", 1), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)], "bytes": [("B", 1), ("kB", 1e3), ("MB", 1e6), ("GB", 1e9)],
          "bytes/s": [("B/s", 1), ("kB/s", 1e3), ("MB/s", 1e6), ("GB/s", 1e9)]}
UNITS = [*SCALES, "cores", "share", ""]


def digits(value):
    """The value with three significant digits, or two if it is below one, and without an exponent."""
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    if abs(value) < 1:
        return f"{value:.{1 - math.floor(math.log10(abs(value)))}f}"
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"


def tell(value, unit):
    if unit == "share":
        return f"{100 * value:.2f} %"
    if unit not in SCALES:
        return f"{digits(value)} {unit}".strip()
    name, factor = next((s for s in reversed(SCALES[unit]) if abs(value) >= s[1]), SCALES[unit][0])
    return f"{digits(value / factor)} {name}"


def with_interval(median, low, high):
    """The median, with its interval in brackets, in which both ends share a unit if it is the same."""
    unit = high.partition(" ")[2]
    return f"{median} ({low.removesuffix(f' {unit}')} to {high})"


def tell_all(entry, unit):
    return with_interval(*(tell(entry[key], unit) for key in ("median", "low", "high")))


def tell_ratio(value, share):
    return f"{100 * (value - 1):+.1f} %" if share else f"{digits(value)} times"


def tell_ratios(beside):
    return with_interval(*(tell_ratio(beside[key], beside["share"]) for key in ("median", "low", "high")))


def tell_goal(entry):
    """The goal as a text."""
    goal = entry["goal"]
    limit, words = (goal["at_most"], "at most") if "at_most" in goal else (goal["at_least"], "at least")
    if goal["of"] == "ratio":
        return f"{words} {tell_ratio(limit, entry['beside']['share'])}"
    return f"{words} {tell(limit, entry['unit'])}"


def tell_reached(entry):
    return tell_ratios(entry["beside"]) if entry["goal"]["of"] == "ratio" else tell_all(entry, entry["unit"])


def tell_met(goal):
    said = "met" if goal["met"] else "not met"
    return said if goal["certain"] else f"{said}, within the interval"
