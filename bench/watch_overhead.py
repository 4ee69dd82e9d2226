#!/usr/bin/python3
"""How much watching adds to a dump: pairs of dumps of one process by kymod, with and without watchers, to a tmpfs.

    bench/watch_overhead.py --pairs 30 --mib 512 --watchers 1 --criu "$(scripts/setup --criu)"

The order in each pair is random. Prints the duration of the request and CRIU's frozen time of both, in nanoseconds.
Each watcher is a `kymo progress --json`. Checked: each watcher got updates.
"""
import json
import random
import shutil
import subprocess
import sys
import time

import common
from dump_overhead import Bench, add_options, samples_of


class WatchBench(Bench):
    def dump(self, target, watchers, rate):
        running = [subprocess.Popen([*self.kymod.kymo, "progress", "churn", "--wait", "--json", "--rate", str(rate)],
                                    stdout=subprocess.PIPE, text=True) for _ in range(watchers)]
        time.sleep(0.3)  # with and without watchers, so that both dumps begin in the same state
        reply = json.loads(self.run_kymo("dump", "process", "churn", "--dir", target, "--leave-running", "--json"))
        updates = [len(watcher.communicate(timeout=30)[0].splitlines()) for watcher in running]
        # If a dump ends before its first update is due, the watcher gets only its result.
        if watchers and min(updates) < 1:
            sys.exit(f"watch_overhead: a watcher saw {min(updates)} updates")
        if reply["stats"]["pages_written"] < self.mib * 256:
            sys.exit("watch_overhead: a dump is not whole")
        return {"duration_ms": reply["duration_ns"] / 1e6, "frozen_ms": reply["stats"]["frozen_time_us"] / 1000,
                "updates": sum(updates)}

    def pair_of(self, number, watchers, rate):
        measured = {}
        ways = [("watched", watchers), ("alone", 0)]
        random.shuffle(ways)
        for name, count in ways:
            target = self.folder / f"{name}-{number}"
            measured[name] = self.dump(target, count, rate)
            shutil.rmtree(target, ignore_errors=True)
        return measured


def main():
    parser = common.parser_of(__doc__)
    add_options(parser, 30, 512)
    parser.add_argument("--watchers", type=int, default=1)
    parser.add_argument("--rate", type=int, default=10, help="updates per second")
    arguments = parser.parse_args()
    with common.scratch_folder(arguments.folder) as folder, WatchBench(arguments, folder) as bench:
        bench.start_workload()
        bench.pair_of("warm-up", arguments.watchers, arguments.rate)
        pairs = [bench.pair_of(n, arguments.watchers, arguments.rate) for n in range(arguments.pairs)]
    common.finish(arguments, f"{len(pairs)} pairs of dumps of a {arguments.mib} MiB process into {arguments.folder}, "
                  f"{arguments.watchers} watchers at {arguments.rate}/s, ns", samples_of(pairs))


if __name__ == "__main__":
    main()
