#!/usr/bin/python3
"""Whether the advice of `kymo explain` helps as much as it says: pairs of dumps of programs that are slow for a known reason,
as they are and with the advice followed.

    bench/advice.py --pairs 10 --criu "$(scripts/setup --criu)"
    bench/advice.py --only cpu-wait,compression

In each pair the order is drawn by lot. For each rule it prints how often the rule was named first, the frozen time as it was
and with the advice, how much shorter that is, and how much shorter the advice said it would be. At the end it is 1 if a median is
not within a factor of two of what was said. An advice without a figure is not tested. Not made here, because a program cannot
make them reliably or without harm: steal, swap, memory-pressure and host-memory.
"""
import contextlib
import json
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile

import common
import inside_cost
from inside_cost import await_

TESTS = pathlib.Path(__file__).resolve().parent.parent / "tests/e2e"


class Case:
    """A cause: the program, how kymod and the program run, and the options of a dump without and with the advice."""

    def __init__(self, rule, program, slow=(), better=(), slow_folder=None, better_folder=None, loops=0, nice=0, one_cpu=False):
        self.rule, self.program, self.slow, self.better = rule, program, list(slow), list(better)
        self.slow_folder, self.better_folder, self.loops, self.nice, self.one_cpu = slow_folder, better_folder, loops, nice, one_cpu


def cases(disks):
    churn, shape = lambda mib: ["churn", str(mib)], lambda *words: ["shape", *words]
    busy = 6 * os.cpu_count()
    return [
        Case("cpu-wait", churn(256), loops=busy, nice=-20),
        Case("cross-cpu", churn(512), one_cpu=True),
        Case("disk-wait", churn(64), slow_folder=disks["sync"], better_folder="/dev/shm"),
        Case("disk-wait", churn(64), slow_folder=disks["sync"], better=["--compression", "zstd"]),
        Case("dirty-throttled", churn(64), slow_folder=disks["bounded"], better_folder="/dev/shm"),
        Case("compression", churn(16), slow=["--compression", "zstd", "--compression-level", "15"], better=["--compression", "lz4"]),
        Case("many-mappings", shape("mappings", "15000", "1"), better=["--log-level", "0"]),
        Case("scattered-memory", shape("scattered", "128"), better=["PROGRAM", "huge"]),
    ]


class Daemon(inside_cost.Daemon):
    """kymod, perhaps with another priority or on one CPU."""

    def __init__(self, arguments, folder, way, before):
        self.folder = folder / way
        self.folder.mkdir()
        tools = arguments.build.resolve() / "tools"
        self.kymo = [tools / "kymo/kymo", "--socket", self.folder / "kymod.sock"]
        self.process = subprocess.Popen(
            [*before, tools / "kymod/kymod", "--socket", self.folder / "kymod.sock", "--state-dir", self.folder / "state", "--http",
             "127.0.0.1:0", "--criu", arguments.criu], stdout=subprocess.DEVNULL, stderr=(self.folder / "kymod.log").open("w"))
        await_(lambda: subprocess.run([*self.kymo, "ps"], capture_output=True).returncode == 0, "kymod does not answer")

    def dump(self, pid, target, options):
        done = subprocess.run([*self.kymo, "dump", "process", str(pid), "--leave-running", "--dir", target, "--json", *options],
                              capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"advice: a dump failed: {done.stderr}")
        verdict = json.loads((target / "checkpoint.json").read_text())["verdict"]
        shutil.rmtree(target)
        return verdict


@contextlib.contextmanager
def slow_disks(folder):
    """A file system that writes at once, and one of which hardly any page may wait to be written. None where there is no loop device."""
    disks, mounted = {"sync": None, "bounded": None}, []
    try:
        for name, options in (("sync", "loop,sync"), ("bounded", "loop")):
            image, path = folder / f"{name}.img", folder / name
            path.mkdir()
            with image.open("wb") as file:
                file.truncate(1 << 30)
            if subprocess.run(["mkfs.ext4", "-q", "-F", image]).returncode != 0 or subprocess.run(["mount", "-o", options, image, path]).returncode != 0:
                continue
            mounted.append(path)
            if name == "bounded":
                device = path.stat().st_dev
                settings = pathlib.Path(f"/sys/class/bdi/{os.major(device)}:{os.minor(device)}")
                try:
                    (settings / "strict_limit").write_text("1")
                    (settings / "max_bytes").write_text(str(1 << 20))
                except OSError:
                    continue
            disks[name] = path
        yield disks
    finally:
        for path in mounted:
            await_(lambda one=path: subprocess.run(["umount", one], capture_output=True).returncode == 0, "a disk stays in use")


@contextlib.contextmanager
def program(arguments, words, one_cpu=False):
    kind, *rest = words
    if kind == "churn":
        command = [arguments.build.resolve() / "examples/churn/kymo-churn", "--mib", rest[0]]
    else:
        command = [sys.executable, TESTS / "shape.py", *rest]
    pinned = ["taskset", "-c", "0"] if one_cpu else []
    process = subprocess.Popen([*pinned, *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        process.stdout.readline()
        yield process.pid
    finally:
        process.kill()
        process.wait()


def run_case(case, arguments, folder):
    slow_daemon = Daemon(arguments, folder, "slow", [])
    pinned = ["taskset", "-c", "0"] if case.one_cpu else []
    better_daemon = Daemon(arguments, folder, "better", ["nice", "-n", str(case.nice), *pinned])
    other_words = ["shape", case.better[1], *case.program[2:]] if case.better[:1] == ["PROGRAM"] else case.program
    options = [] if other_words is not case.program else case.better
    loops = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(case.loops)]
    pairs = []
    try:
        with program(arguments, case.program) as slow, program(arguments, other_words, case.one_cpu) as better:
            for number in range(arguments.pairs + 1):  # the first is a warm-up
                pair = {}
                for way in random.sample(["slow", "better"], 2):
                    pid, daemon, given, where = ((slow, slow_daemon, case.slow, case.slow_folder) if way == "slow"
                                                 else (better, better_daemon, options, case.better_folder or case.slow_folder))
                    target = pathlib.Path(tempfile.mkdtemp(prefix="advice-", dir=where or folder)) / "one"
                    pair[way] = daemon.dump(pid, target, given)
                    target.parent.rmdir()
                if number:
                    pairs.append(pair)
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
        slow_daemon.stop()
        better_daemon.stop()
    return pairs


def judge(case, pairs):
    """Prints a line. Returns whether the advice does what it says, None if it said nothing."""
    first = [pair["slow"]["findings"][0]["rule"] if pair["slow"]["findings"] else "" for pair in pairs]
    said = [finding for pair in pairs for finding in pair["slow"]["findings"] if finding["rule"] == case.rule and "estimate_ns" in finding]
    was = statistics.median(pair["slow"]["frozen_ns"] for pair in pairs)
    now = statistics.median(pair["better"]["frozen_ns"] for pair in pairs)
    moved = statistics.median(pair["slow"]["frozen_ns"] - pair["better"]["frozen_ns"] for pair in pairs)
    promised = statistics.median(was - sum(finding["estimate_ns"]) / 2 for finding in said) if said else 0
    kept = None if promised <= 0 else 0.5 <= moved / promised <= 2
    words = {None: "nothing was said", True: "as said", False: "NOT as said"}[kept]
    print(f"{case.rule:18}{first.count(case.rule):3} of {len(pairs):<3}{was / 1e6:9.0f} ms{now / 1e6:9.0f} ms{moved / 1e6:9.0f} ms{promised / 1e6:9.0f} ms  {words}", flush=True)
    return kept


def main():
    parser = common.parser_of(__doc__)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--only", default="", help="rules, separated by commas")
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("/var/tmp"))
    parser.add_argument("--build", type=pathlib.Path, default=common.BUILD)
    parser.add_argument("--criu", default=common.CRIU)
    arguments = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="kymo-bench-", dir=arguments.folder))
    wanted = arguments.only.split(",") if arguments.only else []
    kept = []
    print(f"{'rule':18}{'first':>9}  {'as it was':>10}{'advised':>12}{'shorter by':>12}{'said':>12}")
    try:
        with slow_disks(folder) as disks:
            for number, case in enumerate(cases(disks)):
                if wanted and case.rule not in wanted:
                    continue
                if case.rule in ("disk-wait", "dirty-throttled") and case.slow_folder is None:
                    print(f"{case.rule:18} no such loop device here")
                    continue
                own = folder / f"case-{number}"
                own.mkdir()
                kept.append(judge(case, run_case(case, arguments, own)))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if False in kept else 0


if __name__ == "__main__":
    sys.exit(main())
