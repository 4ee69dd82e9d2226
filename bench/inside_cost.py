#!/usr/bin/python3
"""What the view inside a dump costs: rounds of three dumps of one process, with it, without it, and again without it.

    bench/inside_cost.py --pairs 30 --mib 512 --criu "$(scripts/setup --criu)"
    bench/inside_cost.py --mappings 15000       the memory in so many mappings
    bench/inside_cost.py --restores             restores of each dump: their time in all
    bench/inside_cost.py --inside=pages,offcpu  what is seen on request, too

In each round the order is drawn by lot. Printed are CRIU's frozen times in nanoseconds, and the CPU time of one reading.
Below them stand two ratios of each round: with the view to without it, and the control, which is without it twice. What
the control shows is noise. Checked: each dump has as many pages as the process, and only the recordings of the first daemon have the
columns.
"""
import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import common
import dump_overhead
from figures import interval_of_median

SHAPE = pathlib.Path(__file__).resolve().parent.parent / "tests/e2e/shape.py"
WAYS = {"with": [], "without": ["--no-inside"], "again": ["--no-inside"]}


def await_(condition, what, seconds=60):
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            sys.exit(f"inside_cost: {what}: timeout")
        time.sleep(0.05)


class Daemon:
    def __init__(self, arguments, folder, way):
        self.folder = folder / way
        self.folder.mkdir()
        tools = arguments.build.resolve() / "tools"
        self.kymo = [tools / "kymo/kymo", "--socket", self.folder / "kymod.sock"]
        self.process = subprocess.Popen(
            [tools / "kymod/kymod", "--socket", self.folder / "kymod.sock", "--state-dir", self.folder / "state", "--http",
             "127.0.0.1:0", "--criu", arguments.criu, *WAYS[way]],
            stdout=subprocess.DEVNULL, stderr=(self.folder / "kymod.log").open("w"))
        await_(lambda: subprocess.run([*self.kymo, "ps"], capture_output=True).returncode == 0, "kymod does not answer")

    def ask(self, *words):
        """The reply to a request, and what its recording says of the view inside."""
        done = subprocess.run([*self.kymo, *words, "--json"], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"inside_cost: {words[0]} failed: {done.stderr}")
        reply = json.loads(done.stdout)
        meta = pathlib.Path(reply["recording"].removesuffix(".tsv") + ".meta.json")
        await_(lambda: json.loads(meta.read_text()).get("state") == "ended", "a recording does not end")
        return reply, json.loads(meta.read_text())["about"].get("inside")

    def dump(self, pid, name):
        target = self.folder / name
        reply, seen = self.ask("dump", "process", str(pid), "--leave-running", "--dir", target)
        shutil.rmtree(target)
        return reply["stats"], seen

    def restore(self, pid, name):
        """Dumps and ends the process, and restores it. The time of the restore stands as the frozen time of a dump."""
        target = self.folder / name
        stats = self.ask("dump", "process", str(pid), "--dir", target)[0]["stats"]
        with contextlib.suppress(ChildProcessError):  # the first one was started here, and holds its pid until then
            os.waitpid(pid, 0)
        reply, seen = self.ask("restore", "process", target)
        shutil.rmtree(target)
        return {**stats, "frozen_time_us": reply["duration_ns"] / 1000}, seen

    def stop(self):
        self.process.terminate()
        self.process.wait()


def start_workload(arguments):
    if arguments.mappings:
        pages = max(1, arguments.mib * 256 // arguments.mappings)
        command = [sys.executable, SHAPE, "mappings", str(arguments.mappings), str(pages)]
        least = arguments.mappings * pages
    else:
        command = [arguments.build.resolve() / "examples/churn/kymo-churn", "--mib", str(arguments.mib)]
        least = arguments.mib * 256
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               start_new_session=True)
    statm = pathlib.Path(f"/proc/{process.pid}/statm")
    await_(lambda: int(statm.read_text().split()[1]) >= least, "the program does not fill its memory")
    time.sleep(0.5)
    return process, least


def round_of(daemons, pid, least, name, restores=False):
    measured = {}
    for way in random.sample(list(WAYS), len(WAYS)):
        stats, seen = daemons[way].restore(pid, name) if restores else daemons[way].dump(pid, name)
        if stats["pages_written"] < least:
            sys.exit(f"inside_cost: a dump has {stats['pages_written']} pages, the process {least}")
        if (seen is None) != (WAYS[way] == ["--no-inside"]):
            sys.exit(f"inside_cost: the recording of the dump {way} the view has {seen}")
        measured[way] = stats["frozen_time_us"] * 1000
        if seen:
            measured["reading"] = seen["cpu_ns"] / seen["readings"]
    return measured


def main():
    parser = common.parser_of(__doc__)
    dump_overhead.add_options(parser, 30, 512)
    parser.add_argument("--mappings", type=int, default=0, help="number of mappings (default: those of kymo-churn)")
    parser.add_argument("--restores", action="store_true", help="measure restores")
    parser.add_argument("--inside", help="what else is looked at: pages,offcpu")
    arguments = parser.parse_args()
    if arguments.inside:
        WAYS["with"] = [f"--inside={arguments.inside}"]
    folder = pathlib.Path(tempfile.mkdtemp(prefix="kymo-bench-", dir=arguments.folder))
    daemons, process = {}, None
    try:
        for way in WAYS:
            daemons[way] = Daemon(arguments, folder, way)
        process, least = start_workload(arguments)
        round_of(daemons, process.pid, least, "warm-up", arguments.restores)
        rounds = [round_of(daemons, process.pid, least, f"dump-{n}", arguments.restores) for n in range(arguments.pairs)]
    finally:
        if process:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)  # a restored one has the same pid
        for daemon in daemons.values():
            daemon.stop()
        shutil.rmtree(folder, ignore_errors=True)
    what = "restores" if arguments.restores else "dumps"
    samples = {f"{way}.{'whole' if arguments.restores else 'frozen'}": [one[way] for one in rounds] for way in WAYS}
    samples["reading.cpu"] = [one["reading"] for one in rounds]
    common.finish(arguments, f"{len(rounds)} rounds of {what} of a {arguments.mib} MiB process into {arguments.folder}, ns", samples)
    for name, way in () if arguments.json else (("with : without", "with"), ("control", "again")):
        changes = [100 * (one[way] / one["without"] - 1) for one in rounds]
        low, high = interval_of_median(changes)
        print(f"{name:24}{statistics.median(changes):+15.1f} %   {low:+.1f} to {high:+.1f} %")


if __name__ == "__main__":
    main()
