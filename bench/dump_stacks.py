#!/usr/bin/python3
"""What stack profiles of dumps cost: rounds of three dumps of one process, with --profiling-stacks, without it, and again without it.

    bench/dump_stacks.py --pairs 30 --mib 512 --rate 99 --criu "$(scripts/setup --criu)"

In each round the order is drawn by lot. Printed are CRIU's frozen times in nanoseconds. Below them stand two ratios of each round:
with stacks to without them, and the control, which is without them twice. What the control shows is noise. Checked: each dump has as
many pages as the process, and the profiles of the first daemon have samples of CRIU.
"""
import json
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile

import common
import dump_overhead
import inside_cost
from figures import interval_of_median


class Daemon(inside_cost.Daemon):
    def dump(self, pid, name):
        """The frozen time in nanoseconds, and the samples of CRIU; None if there is no profile."""
        target = self.folder / name
        done = subprocess.run([*self.kymo, "dump", "process", str(pid), "--leave-running", "--dir", target, "--json"],
                              capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"dump_stacks: a dump failed: {done.stderr}")
        reply = json.loads(done.stdout)
        if reply["warnings"]:
            sys.exit(f"dump_stacks: {reply['warnings'][0]}")
        meta = pathlib.Path(reply["recording"].removesuffix(".tsv") + ".meta.json")
        inside_cost.await_(lambda: json.loads(meta.read_text()).get("state") == "ended", "a recording does not end")
        profile = pathlib.Path(reply["recording"].removesuffix(".tsv") + ".pb.gz")
        criu = None
        if "stacks" in json.loads(meta.read_text())["about"]:
            inside_cost.await_(profile.exists, "a stack profile is not written")
            seen = subprocess.run([*self.kymo, "inspect", target, "--json"], check=True, capture_output=True, text=True)
            criu = sum(phase["criu"]["samples"] for one in json.loads(seen.stdout)["stacks"] for phase in one["phases"])
        shutil.rmtree(target)
        return reply["stats"], criu


def round_of(daemons, pid, least, name):
    measured = {}
    for way in random.sample(list(inside_cost.WAYS), len(inside_cost.WAYS)):
        stats, criu = daemons[way].dump(pid, name)
        if stats["pages_written"] < least:
            sys.exit(f"dump_stacks: a dump has {stats['pages_written']} pages, the process {least}")
        if bool(criu) != (way == "with"):
            sys.exit(f"dump_stacks: a dump {way} stacks has {criu} samples of CRIU")
        measured[way] = stats["frozen_time_us"] * 1000
    return measured


def main():
    parser = common.parser_of(__doc__)
    dump_overhead.add_options(parser, 30, 512)
    parser.add_argument("--mappings", type=int, default=0, help="number of mappings (default: those of kymo-churn)")
    parser.add_argument("--rate", type=int, default=99, help="samples of each CPU a second (default 99)")
    arguments = parser.parse_args()
    inside_cost.WAYS = {"with": [f"--profiling-stacks={arguments.rate}"], "without": [], "again": []}
    folder = pathlib.Path(tempfile.mkdtemp(prefix="kymo-bench-", dir=arguments.folder))
    daemons, process = {}, None
    try:
        for way in inside_cost.WAYS:
            daemons[way] = Daemon(arguments, folder, way)
        process, least = inside_cost.start_workload(arguments)
        round_of(daemons, process.pid, least, "warm-up")
        rounds = [round_of(daemons, process.pid, least, f"dump-{n}") for n in range(arguments.pairs)]
    finally:
        if process:
            process.kill()
        for daemon in daemons.values():
            daemon.stop()
        shutil.rmtree(folder, ignore_errors=True)
    samples = {f"{way}.frozen": [one[way] for one in rounds] for way in inside_cost.WAYS}
    common.finish(arguments, f"{len(rounds)} rounds of dumps of a {arguments.mib} MiB process into {arguments.folder}, ns", samples)
    for name, way in () if arguments.json else (("with : without", "with"), ("control", "again")):
        changes = [100 * (one[way] / one["without"] - 1) for one in rounds]
        low, high = interval_of_median(changes)
        print(f"{name:24}{statistics.median(changes):+15.1f} %   {low:+.1f} to {high:+.1f} %")


if __name__ == "__main__":
    main()
