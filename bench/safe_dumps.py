#!/usr/bin/python3
"""How much it costs to make a dump's images durable (--sync), to write and compare checksums (--checksums), and to
rehearse its restore (--prove).

    bench/safe_dumps.py --pairs 10 --mib 256 --criu "$(scripts/setup --criu)" --folder /var/tmp      # a disk, not tmpfs

Each round dumps a process so that it ends, and restores it, in each of the ways, in random order. Prints the durations
of the requests and CRIU's frozen time, in nanoseconds. Checked: after each restore the process runs again.
"""
import json
import pathlib
import random
import subprocess
import sys

import common
from dump_overhead import Bench, add_options

WAYS = {"plain": [], "sync": ["--sync"], "checksums": ["--checksums"],
        "prove": ["--prove"]}


class SafeBench(Bench):
    def dump_and_restore(self, way, target):
        dumped = json.loads(self.run_kymo("dump", "process", "churn", "--dir", target, "--json", *WAYS[way]))
        restored = json.loads(self.run_kymo("restore", target, "--json"))
        if not pathlib.Path(f"/proc/{restored['pid']}").exists():
            sys.exit(f"safe_dumps: the process is not restored ({way})")
        self.run_kymo("delete", target)  # waits for the end of the recording
        # Data that is written to the disk later must not slow the next dump.
        subprocess.run(["sync"], check=True)
        return {"dump": dumped["duration_ns"], "frozen": dumped["stats"]["frozen_time_us"] * 1000,
                "restore": restored["duration_ns"]}

    def round(self, number):
        ways = list(WAYS)
        random.shuffle(ways)
        return {way: self.dump_and_restore(way, self.folder / f"{way}-{number}") for way in ways}


def main():
    parser = common.parser_of(__doc__)
    add_options(parser, 10, 256)
    arguments = parser.parse_args()
    with common.scratch_folder(arguments.folder) as folder, SafeBench(arguments, folder) as bench:
        bench.start_workload()
        rounds = [bench.round(number) for number in range(arguments.pairs)]
    common.finish(arguments, f"{len(rounds)} rounds of dumps and restores of a {arguments.mib} MiB process, ns",
                  {f"{way}.{figure}": [one[way][figure] for one in rounds]
                   for way in WAYS for figure in ("dump", "frozen", "restore")})


if __name__ == "__main__":
    main()
