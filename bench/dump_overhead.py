#!/usr/bin/python3
"""How much time kymod adds to a dump: pairs of `kymo dump` and bare `criu dump` of one process, to a tmpfs.

    bench/dump_overhead.py --pairs 30 --mib 512 --criu "$(scripts/setup --criu)"

The order in each pair is random. Prints the elapsed time and CRIU's frozen time of both, in nanoseconds, and the time
that kymod itself uses, which `--mib 1` shows best. Checked: the images have as many pages as the process.
"""
import json
import pathlib
import random
import shutil
import subprocess
import sys
import time

import common


def varints(data):
    """Returns the integer fields of a protobuf message by their number."""
    fields, at = {}, 0

    def varint():
        nonlocal at
        value, shift = 0, 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            fields[key >> 3] = varint()
        else:
            size = varint()
            fields[key >> 3] = data[at:at + size]
            at += size
    return fields


def bare_stats(folder):
    """CRIU's statistics of a dump. The file has two magic numbers, a size, and stats_entry{dump=1}."""
    dump = varints(varints((folder / "stats-dump").read_bytes()[12:])[1])
    return {"frozen_ms": dump[2] / 1000, "pages": dump.get(7, 0)}


class Bench:
    def __init__(self, arguments, folder):
        self.folder = folder
        self.bin = arguments.build.resolve()
        self.criu = arguments.criu
        self.kymod = common.Kymod(self.bin, self.criu, folder, "--profiling-metrics=all")
        self.run_kymo = self.kymod.run_kymo
        level = getattr(arguments, "bare_log_level", None)
        self.bare_flags = [] if level is None else [f"-v{level}"]
        self.mib = arguments.mib
        self.pid = None

    def start_workload(self):
        self.run_kymo("run", "process", "--name", "churn", "--", self.bin / "examples/churn/kymo-churn",
                      "--mib", str(self.mib))
        self.pid = json.loads(self.run_kymo("ps", "--json"))[0]["pid"]
        common.wait_until(lambda: self.resident_mib() >= self.mib, "kymo-churn does not fill its memory")

    def resident_mib(self):
        pages = int(pathlib.Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * 4096 / 2**20

    def dump_by_kymo(self, target):
        begin = time.monotonic()
        reply = json.loads(self.run_kymo("dump", "process", "churn", "--dir", target, "--leave-running",
                                         "--json"))
        wall_ms = (time.monotonic() - begin) * 1000
        stats = reply["stats"]
        return {"wall_ms": wall_ms, "frozen_ms": stats["frozen_time_us"] / 1000,
                "own_ms": (reply["duration_ns"] - reply["criu_time_ns"]) / 1e6,
                "pages": stats["pages_written"]}

    def dump_bare(self, target):
        target.mkdir()
        begin = time.monotonic()
        subprocess.run([self.criu, "dump", "--tree", str(self.pid), "--images-dir", target, "--leave-running",
                        "--log-file", "dump.log", *self.bare_flags], check=True, capture_output=True)
        wall_ms = (time.monotonic() - begin) * 1000
        return {"wall_ms": wall_ms, **bare_stats(target)}

    def pair(self, number):
        measured = {}
        ways = [("kymo", self.dump_by_kymo), ("bare", self.dump_bare)]
        random.shuffle(ways)
        for name, dump in ways:
            target = self.folder / f"{name}-{number}"
            measured[name] = dump(target)
            shutil.rmtree(target, ignore_errors=True)
        return measured

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.pid:
            subprocess.run(["kill", "-KILL", str(self.pid)], check=False)
        self.kymod.stop()


def add_options(parser, pairs, mib):
    parser.add_argument("--pairs", type=int, default=pairs)
    parser.add_argument("--mib", type=int, default=mib)
    parser.add_argument("--build", type=pathlib.Path, default=common.BUILD)
    parser.add_argument("--criu", default=common.CRIU)
    parser.add_argument("--folder", default="/dev/shm", help="folder for the images")


def samples_of(pairs):
    """{"way.figure": nanoseconds of each pair}, for the figures that are in milliseconds."""
    return {f"{way}.{name.removesuffix('_ms')}": [pair[way][name] * 1e6 for pair in pairs]
            for way in sorted(pairs[0]) for name in pairs[0][way] if name.endswith("_ms")}


def main():
    parser = common.parser_of(__doc__)
    add_options(parser, 30, 512)
    parser.add_argument("--bare-log-level", type=int, help="log level of the bare dumps (default: that of CRIU)")
    arguments = parser.parse_args()
    with common.scratch_folder(arguments.folder) as folder, Bench(arguments, folder) as bench:
        bench.start_workload()
        bench.pair("warm-up")
        pairs = [bench.pair(n) for n in range(arguments.pairs)]

    least = arguments.mib * 256
    for pair in pairs:
        for name, dump in pair.items():
            if dump["pages"] < least:
                sys.exit(f"dump_overhead: a {name} dump has {dump['pages']} pages, the process {least}")
    common.finish(arguments, f"{len(pairs)} pairs of dumps of a {arguments.mib} MiB process into {arguments.folder}, ns",
                  samples_of(pairs))


if __name__ == "__main__":
    main()
