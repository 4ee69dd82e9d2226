#!/usr/bin/python3
"""How much a stack profile costs: rounds of a program with two busy threads, profiled by kymo, by perf, and not at all.

    bench/stacks_cost.py --rounds 20 --rate 99

The order in each round is random. Prints the CPU time that the program needs for its work (in ns), which the interrupts
of a profiler increase, and the CPU time of the profilers while they take samples, as a share of one core. The kernel
measures the time of kymo's BPF program (kernel.bpf_stats_enabled), which is a part of kymo's share. perf only copies
stacks into a file while it samples, and unwinds and names them later: this later work is not in its share. Checked:
each profile has samples of the busy function, and kymo has lost none.
"""
import json
import os
import pathlib
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import common
from figures import interval_of_median

STATS = pathlib.Path("/proc/sys/kernel/bpf_stats_enabled")


def fail(why):
    sys.exit(f"stacks_cost: {why}")


class Bench:
    def __init__(self, options, folder):
        self.options = options
        self.folder = folder
        self.kymo = options.build.resolve() / "tools/kymo/kymo"
        self.program = options.build.resolve() / "tests/profiler/stacks/programs/functions"

    def load(self, profiler):
        """Runs the program. `profiler` gets its pid, and returns a function that ends the profile and returns its
        figures."""
        child = subprocess.Popen([self.program, "work", os.devnull, str(self.options.work)])
        began = time.monotonic()
        finish = profiler(child.pid)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            fail(f"the program ended with {child.returncode}")
        return {"load": (used.ru_utime + used.ru_stime) * 1e9, **finish(time.monotonic() - began)}

    def bare(self, _):
        return lambda _: {}

    def by_kymo(self, pid):
        process = subprocess.Popen([self.kymo, "profile", "-p", str(pid), "--rate", str(self.options.rate), "--duration", "1h", "--json"],
                                   stdout=subprocess.PIPE, text=True)

        def finish(_):
            profile = json.loads(process.communicate(timeout=120)[0])
            if profile["lost"] != 0 or not any("turn" in one["function"] and one["self_samples"] for one in profile["functions"]):
                fail(f"the profile lost {profile['lost']} samples, or does not have the function that works")
            own, bpf = (profile[name] / profile["duration_ns"] for name in ("own_cpu_ns", "bpf_ns"))
            return {"share": own + bpf, "bpf": bpf}
        return finish

    def by_perf(self, pid):
        data = self.folder / "perf.data"
        process = subprocess.Popen(["perf", "record", "-q", "-F", str(self.options.rate), "-e", "cpu-clock", "-g", "-o", data, "-p", str(pid)],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        def finish(seconds):
            process.send_signal(signal.SIGINT)
            _, _, used = os.wait4(process.pid, 0)
            process.returncode = 0
            if data.stat().st_size < 10_000:
                fail("perf has taken no samples")
            return {"share": (used.ru_utime + used.ru_stime) / seconds}
        return finish

    def round(self):
        ways = {"bare": self.bare, "kymo": self.by_kymo, "perf": self.by_perf}
        return {name: self.load(ways[name]) for name in random.sample(list(ways), len(ways))}


def main():
    parser = common.parser_of(__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--rate", type=int, default=99)
    parser.add_argument("--work", type=int, default=8000, help="million turns of each thread")
    parser.add_argument("--build", type=pathlib.Path, default=common.BUILD)
    options = parser.parse_args()
    before = STATS.read_text()
    with tempfile.TemporaryDirectory(prefix="kymo-bench-") as folder:
        bench = Bench(options, pathlib.Path(folder))
        try:
            STATS.write_text("1")
            rounds = [bench.round() for _ in range(options.rounds)]
        finally:
            STATS.write_text(before)
    samples = {f"{way}.load": [one[way]["load"] for one in rounds] for way in ("bare", "kymo", "perf")}
    for way in ("kymo", "perf"):
        samples[f"{way}.cores"] = [one[way]["share"] for one in rounds]
    samples["kymo.bpf"] = [one["kymo"]["bpf"] for one in rounds]
    common.finish(options, f"{options.rounds} rounds at {options.rate} Hz", samples)
    for way in () if options.json else ("kymo", "perf"):
        changes = [100 * (one[way]["load"] / one["bare"]["load"] - 1) for one in rounds]
        low, high = interval_of_median(changes)
        print(f"{way + ': slow-down':24}{statistics.median(changes):+15.2f} %   {low:+.2f} to {high:+.2f} %")


if __name__ == "__main__":
    main()
