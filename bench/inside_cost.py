#!/usr/bin/python3
"""How much the view inside a dump costs: rounds of three dumps of one process: with it, without it, and again without
it.

    bench/inside_cost.py --pairs 30 --mib 512 --criu "$(scripts/setup --criu)"
    bench/inside_cost.py --mappings 15000       the memory in this many mappings
    bench/inside_cost.py --restores             dumps that end the process, and the time of a restore of each
    bench/inside_cost.py --inside=pages,offcpu  with what is seen on request, too

The order in each round is random. Prints CRIU's frozen times in nanoseconds, and the CPU time of one reading. Then
prints two ratios for each round: with the view to without it, and, as a control, the two dumps without it. The control
shows the noise. Checked: each dump has as many pages as the process, and only the recordings of the first daemon have
the columns.
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
import time

import common
import dump_overhead
from figures import interval_of_median

SHAPE = pathlib.Path(__file__).resolve().parent.parent / "tests/e2e/shape.py"
WAYS = {"with": [], "without": ["--no-inside"], "again": ["--no-inside"]}


class Daemon:
    def __init__(self, arguments, folder, flags, before=(), options=()):
        folder.mkdir()
        self.folder = folder
        self.options = options  # of kymo dump
        self.keeps_waits = any("offcpu" in flag for flag in flags)
        self.kymod = common.Kymod(arguments.build, arguments.criu, folder, *flags, before=before)

    def ask(self, *words):
        """Returns the reply, the path of its recording without the ending, and `about` of its metadata, after all
        that is recorded has been written."""
        reply = json.loads(self.kymod.run_kymo(*words, "--json"))
        stem = reply["recording"].removesuffix(".tsv")
        meta = pathlib.Path(stem + ".meta.json")
        common.wait_until(lambda: meta.exists() and json.loads(meta.read_text()).get("state") == "ended",
                          "a recording does not end")
        if self.keeps_waits:
            common.wait_until(pathlib.Path(stem + ".waits.pb.gz").exists, "the stacks of waits are not written")
        return reply, stem, json.loads(meta.read_text())["about"]

    def dump(self, pid, name):
        return self.ask("dump", "process", str(pid), "--leave-running", "--dir", self.folder / name, *self.options)

    def restore(self, pid, name):
        """Dumps and ends the process, and restores it. Returns the same of the restore, with CRIU's figures of the dump
        and the duration of the restore in the place of the frozen time."""
        stats = self.ask("dump", "process", str(pid), "--dir", self.folder / name)[0]["stats"]
        with contextlib.suppress(ChildProcessError):  # the first one is a child of this program
            os.waitpid(pid, 0)
        # The restore would wait, too, until its parent has asked how it ended.
        common.wait_until(lambda: not pathlib.Path(f"/proc/{pid}").exists(), "a process does not end after its dump")
        reply, stem, about = self.ask("restore", self.folder / name)
        return {**reply, "stats": {**stats, "frozen_time_us": reply["duration_ns"] / 1000}}, stem, about


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
    common.wait_until(lambda: int(statm.read_text().split()[1]) >= least, "the program does not fill its memory")
    time.sleep(0.5)
    return process, least


def end(pid):  # a restored process has the same pid
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def round_of(daemons, pid, least, name, check, restores):
    measured = {}
    for way in random.sample(list(daemons), len(daemons)):
        reply, stem, about = (daemons[way].restore if restores else daemons[way].dump)(pid, name)
        if reply["stats"]["pages_written"] < least:
            sys.exit(f"a dump has {reply['stats']['pages_written']} pages, the process {least}")
        measured[f"{way}.frozen"] = reply["stats"]["frozen_time_us"] * 1000
        measured |= check(daemons[way].kymod, way, reply, stem, about)
        shutil.rmtree(daemons[way].folder / name)
    return measured


def parser_of(documentation):
    parser = common.parser_of(documentation)
    dump_overhead.add_options(parser, 30, 512)
    parser.add_argument("--mappings", type=int, default=0, help="number of mappings (default: those of kymo-churn)")
    parser.add_argument("--restores", action="store_true", help="measure restores; 'frozen' is their duration")
    return parser


def measure(arguments, ways, check, options=None):
    """Makes rounds of dumps, one by a kymod with the flags of each of the `ways`: with, without and again. `options` are
    those of `kymo dump` for a way. `check` returns more figures of a dump, and ends the program if the dump is wrong."""
    with common.scratch_folder(arguments.folder) as folder, contextlib.ExitStack() as stack:
        daemons = {}
        for way, flags in ways.items():
            daemons[way] = Daemon(arguments, folder / way, flags, options=(options or {}).get(way, ()))
            stack.callback(daemons[way].kymod.stop)
        process, least = start_workload(arguments)
        stack.callback(end, process.pid)
        round_of(daemons, process.pid, least, "warm-up", check, arguments.restores)
        rounds = [round_of(daemons, process.pid, least, f"dump-{n}", check, arguments.restores)
                  for n in range(arguments.pairs)]
    what = "restores" if arguments.restores else "dumps"
    common.finish(arguments, f"{len(rounds)} rounds of {what} of a {arguments.mib} MiB process into {arguments.folder}, ns",
                  {name: [one[name] for one in rounds] for name in sorted(rounds[0])})
    return {} if arguments.json else print_ratios(rounds)


def print_ratios(rounds):
    """Prints and returns, for `with` and for the control, how much more it took in percent: the median and its interval."""
    ratios = {}
    for name, way in (("with : without", "with"), ("control", "again")):
        changes = [100 * (one[f"{way}.frozen"] / one["without.frozen"] - 1) for one in rounds]
        ratios[way] = statistics.median(changes), *interval_of_median(changes)
        print("{:24}{:+15.1f} %   {:+.1f} to {:+.1f} %".format(name, *ratios[way]))
    return ratios


def reading_of(_kymod, way, _reply, _stem, about):
    seen = about.get("inside")
    if (seen is None) != ("--no-inside" in WAYS[way]):
        sys.exit(f"inside_cost: what the recording '{way}' has of the view: {seen}")
    if seen and any("BPF" in line for line in seen["missing"]):
        sys.exit(f"inside_cost: the view is not whole: {seen['missing']}")
    return {"reading.cpu": seen["cpu_ns"] / seen["readings"]} if seen else {}


def main():
    parser = parser_of(__doc__)
    parser.add_argument("--inside", help="what the view sees on request: pages,offcpu")
    arguments = parser.parse_args()
    if arguments.inside:
        WAYS["with"] = [f"--inside={arguments.inside}"]
    ratios = measure(arguments, WAYS, reading_of)
    if arguments.json:
        return
    for goal, met in (("median at most +2 %", ratios["with"][0] <= 2),
                      ("upper end at most the control's and 2 points", ratios["with"][2] <= ratios["again"][2] + 2)):
        print(f"{goal}: {'met' if met else 'not met'}")


if __name__ == "__main__":
    main()
