#!/usr/bin/python3
"""Streaming with compression beside plain writing, onto a disk that bindfs makes slow.

    bench/stream_slow_disk.py --pairs 5 --mib 64 --write-rate 100M --criu "$(scripts/setup --criu)"

The process is a Python that keeps the lines of a log in memory: kymo-churn's memory is random, and nothing packs that.
Each round dumps it plainly and streamed with each compression, in an order drawn by lot. Printed are the
medians of the requests' durations, the bytes on disk, and the median of the paired factors with its 95 % interval. One
dump of each way is restored from, and must count on.
"""
import argparse
import json
import pathlib
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile

from dump_overhead import Bench, interval_of_median

WAYS = {"plain": [], "none": ["--stream"], "zstd": ["--stream", "--compression", "zstd"],
        "lz4": ["--stream", "--compression", "lz4"]}


# Lines of a log, each an object of its own, until there is so much memory.
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
        self.await_(lambda: subprocess.run([*self.kymo(), "ps"], capture_output=True).returncode == 0)
        self.run_kymo("run", "process", "--name", "churn", "--", "/usr/bin/python3", "-c", WORKLOAD, str(self.mib))
        job = json.loads(self.run_kymo("ps", "--json"))[0]
        self.pid = job["pid"]
        self.await_(lambda: "ready" in pathlib.Path(job["stdout_path"]).read_text(), 120)

    def dump(self, way, target, *more):
        reply = json.loads(self.run_kymo("dump", "process", "churn", "--dir", target, "--json", *WAYS[way], *more))
        return {"ms": reply["duration_ns"] / 1e6, "bytes": reply["image_bytes"]}

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
            shutil.rmtree(where / way, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--mib", type=int, default=256)
    parser.add_argument("--write-rate", default="100M", help="of bindfs")
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--criu", default="criu")
    parser.add_argument("--folder", default="/dev/shm")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that no mount is left
    folder = pathlib.Path(tempfile.mkdtemp(prefix="kymo-bench-", dir=arguments.folder))
    slow = folder / "slow"
    slow.mkdir()
    (folder / "disk").mkdir()
    bench = StreamBench(arguments, folder)
    try:
        subprocess.run(["bindfs", f"--write-rate={arguments.write_rate}", folder / "disk", slow], check=True)
        bench.start_workload()
        bench.restores(slow)
        rounds = [bench.round(n, slow) for n in range(arguments.pairs)]
    finally:
        bench.stop()
        subprocess.run(["umount", slow], check=False)
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{len(rounds)} rounds of dumps of a {arguments.mib} MiB process onto a disk of {arguments.write_rate} a second")
    for way in WAYS:
        factors = [one["plain"]["ms"] / one[way]["ms"] for one in rounds]
        low, high = interval_of_median(factors)
        print(f"{way:6} {statistics.median(one[way]['ms'] for one in rounds):9.1f} ms  "
              f"{statistics.median(one[way]['bytes'] for one in rounds) / 2**20:7.1f} MiB on disk  "
              f"{statistics.median(factors):5.2f} times as fast as plain (95 %: {low:.2f} to {high:.2f})")


if __name__ == "__main__":
    main()
