#!/usr/bin/python3
"""Compares streaming with compression with plain writing, to a disk that bindfs makes slow.

    bench/stream_slow_disk.py --pairs 5 --mib 64 --write-rate 100M --criu "$(scripts/setup --criu)"

The process is a Python program that keeps lines of a log in memory, because the random memory of kymo-churn cannot be
compressed. Each round dumps it with CRIU writing the images (--no-stream), and streamed with each compression, in
random order. Prints the durations of the requests in nanoseconds, and the bytes on the disk. Checked: one dump of each
way is restored, and the process runs again.
"""
import contextlib
import json
import pathlib
import random
import shutil
import subprocess
import sys

import common
from dump_overhead import Bench, add_options

WAYS = {"plain": ["--no-stream"], "none": [], "zstd": ["--compression", "zstd"], "lz4": ["--compression", "lz4"]}


# Makes lines of a log, each an object of its own, until they use this much memory.
WORKLOAD = """
import pathlib, sys, time
lines, number = [], 0
while int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4096 < int(sys.argv[1]) << 20:
    for number in range(number, number + 10000):
        lines.append(b"%d.%03d GET /item/%d HTTP/1.1 200 %d" % (number, number % 997, number * 7919 % 100003, number % 4093))
print("ready", flush=True)
while True:
    time.sleep(0.1)
"""


class StreamBench(Bench):
    def start_workload(self):
        self.run_kymo("run", "process", "--name", "churn", "--", "/usr/bin/python3", "-c", WORKLOAD, str(self.mib))
        job = json.loads(self.run_kymo("ps", "--json"))[0]
        self.pid = job["pid"]
        common.wait_until(lambda: "ready" in pathlib.Path(job["stdout_path"]).read_text(), "the process does not fill its memory", 120)

    def dump(self, way, target, *more):
        reply = json.loads(self.run_kymo("dump", "process", "churn", "--dir", target, "--json", *WAYS[way], *more))
        return {"duration": reply["duration_ns"], "bytes": reply["image_bytes"]}

    def round(self, number, where):
        measured = {}
        ways = list(WAYS)
        random.shuffle(ways)
        for way in ways:
            target = where / f"{way}-{number}"
            measured[way] = self.dump(way, target, "--leave-running")
            shutil.rmtree(target, ignore_errors=True)
        return measured

    def restores(self, where):
        for way in WAYS:
            self.dump(way, where / way)
            self.run_kymo("restore", "process", where / way)
            self.pid = json.loads(self.run_kymo("ps", "--json"))[0]["pid"]
            if not pathlib.Path(f"/proc/{self.pid}").exists():
                sys.exit(f"stream_slow_disk: the process is not restored ({way})")
            shutil.rmtree(where / way, ignore_errors=True)


@contextlib.contextmanager
def slow_disk(folder, write_rate):
    slow = folder / "slow"
    slow.mkdir()
    (folder / "disk").mkdir()
    subprocess.run(["bindfs", f"--write-rate={write_rate}", folder / "disk", slow], check=True)
    try:
        yield slow
    finally:
        subprocess.run(["umount", slow], check=False)


def main():
    parser = common.parser_of(__doc__)
    add_options(parser, 5, 256)
    parser.add_argument("--write-rate", default="100M", help="write rate of bindfs, in bytes per second")
    arguments = parser.parse_args()
    with common.scratch_folder(arguments.folder) as folder, slow_disk(folder, arguments.write_rate) as slow, \
            StreamBench(arguments, folder) as bench:
        bench.start_workload()
        bench.restores(slow)
        rounds = [bench.round(n, slow) for n in range(arguments.pairs)]
    common.finish(arguments, f"{len(rounds)} rounds of dumps of a {arguments.mib} MiB process onto a disk of {arguments.write_rate} "
                  "a second, ns and bytes", {f"{way}.{figure}": [one[way][figure] for one in rounds]
                                             for way in WAYS for figure in ("duration", "bytes")})


if __name__ == "__main__":
    main()
