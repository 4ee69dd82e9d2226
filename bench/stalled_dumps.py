#!/usr/bin/python3
"""How long after its deadline a dump is answered, if the disk of its images stalls.

    bench/stalled_dumps.py --pairs 5 --mib 16 --criu "$(scripts/setup --criu)"

The disk (kymo-test-moody-fs) accepts no page of memory from before the dump until after its answer. Each round dumps
one process through kymod (the default), and with CRIU writing the images (--no-stream), in random order. Prints the
time from the deadline to the end of the command, in nanoseconds. After each dump the disk works again. Checked: the
process runs on.
"""
import json
import os
import pathlib
import random
import subprocess
import sys
import time

import common
from dump_overhead import Bench, add_options

WAYS = {"streamed": [], "by-criu": ["--no-stream"]}
DEADLINE_SECONDS = 3


class MoodyDisk:
    """A folder on a file system that stalls on request (tests/support/moody_fs.cc)."""

    def __init__(self, folder, build):
        self.inner, self.path = folder / "inner", folder / "moody"
        self.inner.mkdir()
        self.path.mkdir()
        self.be("well")
        self.program = subprocess.Popen([build / "tests/support/kymo-test-moody-fs", self.inner, self.path])
        common.wait_until(lambda: os.path.ismount(self.path), "the disk is not mounted")

    def be(self, mood):
        new = self.inner.with_suffix(".mood.new")
        new.write_text(mood)
        new.rename(self.inner.with_suffix(".mood"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.be("well")
        subprocess.run(["umount", "-l", self.path], check=False)
        self.program.terminate()
        self.program.wait()


class StalledBench(Bench):
    def job(self):
        return json.loads(self.run_kymo("ps", "--json"))[0]

    def dump(self, way, disk, target):
        disk.be("stalls-at-pages")
        began = time.monotonic_ns()
        done = subprocess.run([*self.kymod.kymo, "dump", "process", "churn", "--dir", target, "--deadline", f"{DEADLINE_SECONDS}s", *WAYS[way]],
                              check=False, capture_output=True, text=True)
        took = time.monotonic_ns() - began
        disk.be("well")
        if done.returncode != 1 or "deadline" not in done.stderr:
            sys.exit(f"stalled_dumps: the dump did not end at its deadline ({way}): {done.stderr}")
        common.wait_until(lambda: self.job()["state"] == "running" and not self.job()["held"] and not (target / "images.partial").exists(),
                          "kymod does not give the job back")
        used = self.cpu_ticks()
        common.wait_until(lambda: self.cpu_ticks() > used, "the process does not run on")
        return took - DEADLINE_SECONDS * 10**9

    def cpu_ticks(self):
        fields = pathlib.Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return int(fields[11]) + int(fields[12])

    def round(self, number, disk):
        ways = list(WAYS)
        random.shuffle(ways)
        return {way: self.dump(way, disk, disk.path / f"{way}-{number}") for way in ways}


def main():
    parser = common.parser_of(__doc__)
    add_options(parser, 5, 16)
    arguments = parser.parse_args()
    with (common.scratch_folder(arguments.folder) as folder, StalledBench(arguments, folder) as bench,
          MoodyDisk(folder, arguments.build) as disk):
        bench.start_workload()
        rounds = [bench.round(number, disk) for number in range(arguments.pairs)]
    common.finish(arguments, f"{len(rounds)} rounds of dumps of a {arguments.mib} MiB process, ns after the deadline",
                  {f"{way}.late": [one[way] for one in rounds] for way in WAYS})


if __name__ == "__main__":
    main()
