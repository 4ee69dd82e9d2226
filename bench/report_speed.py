#!/usr/bin/python3
"""Compares `kymo report` with DuckDB and pandas, which compute the same figures of one recording, in turns. Compares
the answers.

    bench/report_speed.py [--megabytes 450] [--rounds 3] [--duckdb FOLDER]

The figures are, for each of 16 counters: the lowest, highest and mean value, and the 50th, 90th and 99th percentile of
its rate over windows of 10 ms. `--html` also writes a page, with every sample in it. Each program runs as a new
process, with the file in the page cache. bench/duckdb/report.js runs DuckDB, in the folder of --duckdb, which
tests/support/npm_install makes from bench/duckdb. Without --duckdb it is left out.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import common
import read_speed

WINDOW_NS = 10_000_000
SHARES = [0.5, 0.9, 0.99]

PANDAS = f"""
import sys, json, pandas
rows = pandas.read_csv(sys.argv[1], sep="\\t", dtype="uint64")
lasts = rows.groupby(rows["Time (ns)"] // {WINDOW_NS}).last().astype("int64")
rates = lasts.diff().iloc[1:]
rates = rates.div(rates.pop("Time (ns)"), axis=0) * 1e9
print(json.dumps({{name: [int(rows[name].min()), int(rows[name].max()), rows[name].mean(),
                        *rates[name].quantile({SHARES}).tolist()] for name in rates}}))
"""
NAMES = [f"c{index}" for index in range(read_speed.COLUMNS)]


def timed(command, cwd=None):
    """Returns the output, the elapsed time and CPU time in seconds, and the largest memory use in bytes."""
    with tempfile.TemporaryFile("w+") as out:
        began = time.monotonic()
        child = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL, cwd=cwd)
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.monotonic() - began
        if status != 0:
            sys.exit(f"report_speed: {command[0]} failed ({status})")
        out.seek(0)
        return out.read(), wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def figures_of(report):
    """The figures of `kymo report --json`, in the form of the other programs."""
    return {column["name"]: [column["min"], column["max"], column["mean"],
                             *(column["rate_percentiles"][f"p{share * 100:.0f}"] for share in SHARES)]
            for column in json.loads(report)["recordings"][0]["columns"]}


def check(name, got, reference):
    """Compares the figures. Percentiles may differ because of where windows begin, and because of our histogram
    (src/lens/analysis/rate_profile.h)."""
    for column in NAMES:
        for i, (a, b) in enumerate(zip(got[column], reference[column], strict=True)):
            if abs(a - b) > (1e-9 if i < 3 else 0.02) * abs(b):
                sys.exit(f"report_speed: {column} of {name}: {got[column]} against {reference[column]}")


def commands(options, path, page):
    kymo = str(common.BUILD / "tools/kymo/kymo")
    yield "kymo", [kymo, "report", "--json", path], None, figures_of
    yield "kymo-html", [kymo, "report", "--json", "--html", page, path], None, figures_of
    if options.duckdb:
        yield "duckdb", ["node", "report.js", path, ",".join(NAMES), str(WINDOW_NS), str(SHARES)], options.duckdb, json.loads
    yield "pandas", ["/usr/bin/python3", "-c", PANDAS, path], None, json.loads


def main():
    parser = common.parser_of(__doc__)
    parser.add_argument("--megabytes", type=int, default=450)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--duckdb", type=pathlib.Path)
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="kymo-report-")
    try:
        path, page = os.path.join(folder, "run.tsv"), os.path.join(folder, "run.html")
        read_speed.make_recording(path, options.megabytes)
        size = os.path.getsize(path)
        samples = {}
        for _ in range(options.rounds):
            reference = None
            for name, command, cwd, figures in commands(options, path, page):
                text, wall, _, memory = timed(command, cwd)
                got = figures(text)
                reference = reference or got
                check(name, got, reference)
                samples.setdefault(f"{name}.wall", []).append(wall * 1e9)
                samples.setdefault(f"{name}.memory", []).append(memory)
        common.finish(options, f"wall time (ns) and memory (bytes), {size / 1e6:.0f} MB, a page of "
                      f"{os.path.getsize(page) / 1e6:.0f} MB, {options.rounds} rounds; answers compared", samples)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
