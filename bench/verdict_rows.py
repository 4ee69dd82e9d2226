"""What the verdicts of bench/verdicts.py were worth: a row for each cell, and a summary."""
import collections
import dataclasses
import statistics


def headline_of(about):
    """The rule in the headline; empty if nothing stands out."""
    verdict = about["verdict"]
    found = [one for one in verdict["findings"] if one["short"] == verdict["short"]]
    return found[0]["rule"] if found else ""


def promise_of(about):
    """How much shorter the request should be, in nanoseconds, if what the verdict advises is done. None: it promises nothing."""
    verdict = about["verdict"]
    headline = headline_of(about)
    promises = any(one["rule"] == headline and "estimate_ns" in one for one in verdict["findings"])
    return about["time_ns"] - statistics.mean(verdict["estimate_ns"]) if promises else None


@dataclasses.dataclass
class Row:
    """What the pairs of a cell show."""
    cause: str
    way: str
    direction: str
    slow_ns: float
    cure_ns: float
    saved_ns: float
    promised_ns: float | None  # None: nothing, or there is no cure
    headlines: list
    counts: collections.Counter  # right, silent, wrong

    @property
    def kept(self):
        return None if self.promised_ns is None else self.promised_ns / 2 <= self.saved_ns <= self.promised_ns * 2

    def text(self):
        named = ", ".join(f"{rule or 'nothing'} {count}" for rule, count in collections.Counter(self.headlines).most_common())
        times = ["" if ns is None else f"{ns / 1e6:,.0f} ms" for ns in (self.slow_ns, self.cure_ns, self.saved_ns, self.promised_ns)]
        kept = {None: "", True: "yes", False: "**no**"}[self.kept]
        return line_of([self.cause, self.way, self.direction, f"{self.counts['right']} of {len(self.headlines)}", named, *times, kept])


def line_of(cells):
    return "| " + " | ".join(cells) + " |"


def judge(cause, way, direction, pairs):
    slow, cure = ([pair[name]["time_ns"] for pair in pairs] for name in ("slow", "cure"))
    saved = statistics.median(a - b for a, b in zip(slow, cure))
    made = saved >= statistics.median(slow) / 5
    headlines = [headline_of(pair["slow"]) for pair in pairs]
    counts = collections.Counter()
    for pair, headline in zip(pairs, headlines):
        fits = headline in cause.right or (headline == "" and not made) or (headline == "steal" and pair["slow"]["stolen"] >= 0.1)
        counts["right" if fits else "silent" if headline == "" else "wrong"] += 1
    promises = [ns for pair in pairs if headline_of(pair["slow"]) in cause.right and (ns := promise_of(pair["slow"])) is not None]
    promised = statistics.median(promises) if promises and cause.slow != cause.cure else None
    return Row(cause.name, way, direction, statistics.median(slow), statistics.median(cure), saved, promised, headlines, counts)


def summary_of(rows):
    """A line for each cause and direction."""
    def span(values, text):
        least, most = text(min(values)), text(max(values))
        return least if least == most else f"{least} to {most}"

    lines = [line_of(["cause", "direction", "ways", "right", "shorter by, ms", "promised / came", "kept"]), line_of(["---"] * 7)]
    for name, direction in dict.fromkeys((row.cause, row.direction) for row in rows):
        these = [row for row in rows if (row.cause, row.direction) == (name, direction)]
        counts = sum((row.counts for row in these), collections.Counter())
        promises = [row for row in these if row.promised_ns is not None]
        ratios = [row.promised_ns / row.saved_ns for row in promises if row.saved_ns > 0]
        ways = [row.way for row in these]
        others = [f"{counts[kind]} {kind}" for kind in ("silent", "wrong") if counts[kind]]
        lines.append(line_of([name, direction, "all" if len(ways) == (5 if direction == "dump" else 4) else ", ".join(ways),
                              ", ".join([str(counts["right"]), *others]), span([row.saved_ns for row in these], lambda ns: f"{ns / 1e6:,.0f}"), span(ratios, lambda one: f"{one:.2f}") if ratios else "",
                              f"{sum(row.kept for row in promises)} of {len(promises)}" if promises else ""]))
    return "\n".join(lines)
