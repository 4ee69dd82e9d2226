#!/usr/bin/python3
"""`kymo report` beside DuckDB and pandas that are asked for the same of one recording, in turns; the answers compared.

    bench/report_speed.py [--megabytes 450] [--rounds 3] [--kymo FILE] [--duckdb FOLDER]

Of each of 16 counters: lowest, highest and mean value, and the 50th, 90th and 99th percentile of its rate over windows of
10 ms. `--html` writes a page besides, with every sample in it. Whole processes, the file in the page cache. DuckDB is run
through the npm package @duckdb/node-api, installed in the folder given with --duckdb, and is left out without one.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

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
DUCKDB = """
const { DuckDBInstance } = require('@duckdb/node-api');
(async () => {
  const connection = await (await DuckDBInstance.create()).connect();
  const names = process.argv[2].split(',');
  const each = (make) => names.map(make).join(', ');
  const result = await connection.runAndReadAll(`
    with rows as (select "Time (ns)" as t, * exclude ("Time (ns)")
                  from read_csv('${process.argv[1]}', delim = '\\t', header = true)),
      lasts as (select t // WINDOW as w, count(*) as n, max(t) as t,
                ${each((c) => `min(${c}) as ${c}_low, max(${c}) as ${c}, sum(${c}) as ${c}_sum`)} from rows group by w),
      rates as (select *, ${each((c) => `(${c} - lag(${c}) over (order by w)) * 1e9 / (t - lag(t) over (order by w)) as ${c}_rate`)}
                from lasts)
    select ${each((c) => `min(${c}_low), max(${c}), sum(${c}_sum) / sum(n), quantile_cont(${c}_rate, SHARES)`)} from rates`);
  const values = result.getRows()[0].map((value) => (value.items ? value.items.map(Number) : Number(value)));
  console.log(JSON.stringify(Object.fromEntries(names.map((name, i) => [name, values.slice(4 * i, 4 * i + 4).flat()]))));
})();
""".replace("WINDOW", str(WINDOW_NS)).replace("SHARES", str(SHARES))


def timed(command, cwd=None):
    """What it wrote, its wall and CPU time in seconds, and the most memory it had in bytes."""
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
    """What `kymo report --json` says, as the others do."""
    return {column["name"]: [column["min"], column["max"], column["mean"],
                             *(column["rate_percentiles"][f"p{share * 100:.0f}"] for share in SHARES)]
            for column in json.loads(report)["recordings"][0]["columns"]}


def check(name, got, reference):
    """Percentiles may differ by where windows begin, and by our histogram (src/analysis/rate_profile.h)."""
    for column in NAMES:
        for i, (a, b) in enumerate(zip(got[column], reference[column], strict=True)):
            if abs(a - b) > (1e-9 if i < 3 else 0.02) * abs(b):
                sys.exit(f"report_speed: {column} of {name}: {got[column]} against {reference[column]}")


def commands(options, path, page):
    kymo = str(options.kymo)
    yield "kymo report", [kymo, "report", "--json", path], None, figures_of
    yield "kymo report --html", [kymo, "report", "--json", "--html", page, path], None, figures_of
    if options.duckdb:
        yield "DuckDB", ["node", "-e", DUCKDB, path, ",".join(NAMES)], options.duckdb, json.loads
    yield "pandas", ["/usr/bin/python3", "-c", PANDAS, path], None, json.loads


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--megabytes", type=int, default=450)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kymo", type=pathlib.Path, default=read_speed.ROOT / "build/release/tools/kymo/kymo")
    parser.add_argument("--duckdb", type=pathlib.Path)
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="kymo-report-")
    try:
        path, page = os.path.join(folder, "run.tsv"), os.path.join(folder, "run.html")
        read_speed.make_recording(path, options.megabytes)
        size = os.path.getsize(path)
        runs = {}
        for _ in range(options.rounds):
            reference = None
            for name, command, cwd, figures in commands(options, path, page):
                text, *cost = timed(command, cwd)
                got = figures(text)
                reference = reference or got
                check(name, got, reference)
                runs.setdefault(name, []).append(cost)
        print(f"{size / 1e6:.0f} MB, page {os.path.getsize(page) / 1e6:.0f} MB, {options.rounds} rounds, "
              f"{os.cpu_count()} cores, medians; answers compared")
        print(f"{'':<19} {'wall, s':>8} {'CPU, s':>8} {'memory, MB':>11}")
        for name, costs in runs.items():
            wall, cpu, memory = (statistics.median(values) for values in zip(*costs))
            print(f"{name:<19} {wall:8.2f} {cpu:8.2f} {memory / 1e6:11.0f}")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
