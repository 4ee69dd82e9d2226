#!/usr/bin/python3
"""Sums every column of a plain recording with kymograph's reader and with other programs, in turns, and compares the
sums.

    bench/read_speed.py [--megabytes 450] [--rounds 5] [--duckdb FOLDER] [--file FILE] [--before BENCH_SUMS]

The recording has 17 columns with values of 6 to 12 digits. All values change in every row. Each program runs as a new
process, with the file in the page cache. "kymo-apart" runs a process for each core, each of which reads the whole file.
It shows what threads that share nothing can reach. bench/duckdb/sums.js runs DuckDB, in the folder of --duckdb, which
tests/support/npm_install makes from bench/duckdb. Without --duckdb it is left out. --before names the bench_sums of
another commit, for a comparison. `wc -l` adds nothing: it only finds line ends.
"""

import os
import pathlib
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time

import common

COLUMNS = 16

PANDAS = """
import sys, pandas
total = None
for part in pandas.read_csv(sys.argv[1], sep="\\t", chunksize=500_000, dtype="uint64"):
    sums = part.sum()
    total = sums if total is None else total + sums
print("\\n".join(str(int(value)) for value in total))
"""
AWK = '{ for (i = 1; i <= NF; i++) sum[i] += $i } END { for (i = 1; i <= NF; i++) printf "%.0f\\n", sum[i] }'


def make_recording(path, megabytes):
    random.seed(1)
    values = [10 ** (5 + index % 7) for index in range(COLUMNS)]
    now, written = 0, 0
    with open(path, "w", buffering=1 << 20) as out:
        out.write("\t".join(["Time (ns)", *(f"c{index}" for index in range(COLUMNS))]) + "\n")
        while written < megabytes * 1_000_000:
            now += 1_000_000 + random.randrange(1000)
            step = random.randrange(1, 1000)
            for index in range(COLUMNS):
                values[index] += step + index
            row = f"{now}\t" + "\t".join(map(str, values)) + "\n"
            written += out.write(row)


def timed(command, **options):
    """Returns the output, and the elapsed time and the CPU time in seconds."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=True, **options)
    wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return done.stdout, wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def commands(options, path):
    sums = str(common.PROGRAMS / "bench_sums")
    threads = str(os.cpu_count())
    yield "kymo", [sums, path, "--threads", "1"], {}
    yield "kymo-all", [sums, path, "--threads", threads], {}
    yield "kymo-apart", ["sh", "-c", f"i=1; while [ $i -lt {threads} ]; do '{sums}' '{path}' --threads 1 >/dev/null & i=$((i + 1)); "
                         f"done; '{sums}' '{path}' --threads 1; wait"], {}
    if options.before:
        yield "before", [str(options.before), path, "--threads", "1"], {}
    if options.duckdb:
        yield "duckdb", ["node", "sums.js", path, "1"], {"cwd": options.duckdb}
        yield "duckdb-all", ["node", "sums.js", path, threads], {"cwd": options.duckdb}
    yield "pandas", ["/usr/bin/python3", "-c", PANDAS, path], {}
    yield "awk", ["awk", "-F\t", "NR > 1 " + AWK, path], {"env": {**os.environ, "LC_ALL": "C"}}
    yield "wc", ["wc", "-l", path], {}


def check(name, text, reference):
    """Compares the sums. Other programs use doubles, so the last digits of their sums may differ."""
    if name == "wc":
        return
    got = [float(line) for line in text.split()]
    if len(got) != len(reference) or any(abs(a - b) > 1e-9 * b for a, b in zip(got, reference)):
        sys.exit(f"read_speed: the sums of {name} are not those of kymo: {got} against {reference}")


def main():
    parser = common.parser_of(__doc__)
    parser.add_argument("--megabytes", type=int, default=450)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--duckdb", type=pathlib.Path)
    parser.add_argument("--before", type=pathlib.Path, help="program bench_sums of another commit, to compare with")
    parser.add_argument("--file", help="existing recording to read, instead of a new one")
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="kymo-read-")
    try:
        path = options.file or os.path.join(folder, "run.tsv")
        if not options.file:
            make_recording(path, options.megabytes)
        size = os.path.getsize(path)
        samples = {}
        for _ in range(options.rounds):
            reference = None
            for name, command, extra in commands(options, path):
                text, wall, cpu = timed(command, **extra)
                reference = reference or [float(line) for line in text.split()]
                check(name, text, reference)
                files = os.cpu_count() if name == "kymo-apart" else 1
                samples.setdefault(f"{name}.wall", []).append(files * size / wall)
                samples.setdefault(f"{name}.per_core", []).append(size / cpu)
        common.finish(options, f"bytes a second of {size / 1e6:.0f} MB, {options.rounds} rounds; sums compared", samples)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
