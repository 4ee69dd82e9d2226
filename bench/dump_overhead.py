#!/usr/bin/python3
"""What the daemon adds to a dump: pairs of `kymo dump` and bare `criu dump` of one process, onto tmpfs.

    bench/dump_overhead.py --pairs 30 --mib 512 --criu "$(scripts/setup --criu)"

In each pair the order is drawn by lot. Printed are wall time and CRIU's frozen time of both, in nanoseconds, and what
kymod takes of its own, which `--mib 1` shows best. The images are checked: as many pages written as the process has.
"""
import json
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

import common


def varints(data):
    """The integer fields of a protobuf message by number."""
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
    """CRIU's statistics of a dump: two magics, a size, stats_entry{dump=1}."""
    dump = varints(varints((folder / "stats-dump").read_bytes()[12:])[1])
    return {"frozen_ms": dump[2] / 1000, "pages": dump.get(7, 0)}


class Bench:
    def __init__(self, arguments, folder):
        self.folder = folder
        self.bin = arguments.build.resolve()
        self.criu = arguments.criu
        self.socket = folder / "kymod.sock"
        self.daemon = subprocess.Popen(
            [self.bin / "tools/kymod/kymod", "--profiling-metrics=all", "--socket", self.socket,
             "--state-dir", folder / "state", "--http", "127.0.0.1:0", "--criu", self.criu],
            stdout=subprocess.DEVNULL, stderr=(folder / "kymod.log").open("w"))
        level = getattr(arguments, "bare_log_level", None)
        self.bare_flags = [] if level is None else [f"-v{level}"]
        self.mib = arguments.mib
        self.pid = None

    def start_workload(self):
        self.await_(lambda: subprocess.run([*self.kymo(), "ps"], capture_output=True).returncode == 0)
        self.run_kymo("run", "process", "--name", "churn", "--", self.bin / "examples/churn/kymo-churn",
                      "--mib", str(self.mib))
        self.pid = json.loads(self.run_kymo("ps", "--json"))[0]["pid"]
        self.await_(lambda: self.resident_mib() >= self.mib)

    def kymo(self):
        return [self.bin / "tools/kymo/kymo", "--socket", self.socket]

    def run_kymo(self, *words):
        return subprocess.run([*self.kymo(), *words], check=True, capture_output=True, text=True).stdout

    def resident_mib(self):
        pages = int(pathlib.Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * 4096 / 2**20

    @staticmethod
    def await_(condition, seconds=30):
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                sys.exit("dump_overhead: timeout while waiting for kymod; see kymod.log")
            time.sleep(0.05)

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

    def stop(self):
        if self.pid:
            subprocess.run(["kill", "-KILL", str(self.pid)], check=False)
        self.daemon.terminate()
        self.daemon.wait()


def add_options(parser, pairs, mib):
    parser.add_argument("--pairs", type=int, default=pairs)
    parser.add_argument("--mib", type=int, default=mib)
    parser.add_argument("--build", type=pathlib.Path, default=common.BUILD)
    parser.add_argument("--criu", default=common.CRIU)
    parser.add_argument("--folder", default="/dev/shm", help="folder for the images")


def samples_of(pairs):
    """{"way.figure": nanoseconds of each pair} of what has a figure in milliseconds."""
    return {f"{way}.{name.removesuffix('_ms')}": [pair[way][name] * 1e6 for pair in pairs]
            for way in sorted(pairs[0]) for name in pairs[0][way] if name.endswith("_ms")}


def main():
    parser = common.parser_of(__doc__)
    add_options(parser, 30, 512)
    parser.add_argument("--bare-log-level", type=int, help="log level of the bare dumps (default: that of CRIU)")
    arguments = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="kymo-bench-", dir=arguments.folder))
    bench = Bench(arguments, folder)
    try:
        bench.start_workload()
        bench.pair("warm-up")
        pairs = [bench.pair(n) for n in range(arguments.pairs)]
    finally:
        bench.stop()
        shutil.rmtree(folder, ignore_errors=True)

    least = arguments.mib * 256
    for pair in pairs:
        for name, dump in pair.items():
            if dump["pages"] < least:
                sys.exit(f"dump_overhead: a {name} dump has {dump['pages']} pages, the process {least}")
    common.finish(arguments, f"{len(pairs)} pairs of dumps of a {arguments.mib} MiB process into {arguments.folder}, ns",
                  samples_of(pairs))


if __name__ == "__main__":
    main()
