#!/usr/bin/python3
"""Whether the advice of `kymo explain` helps as much as it promises: pairs of dumps that are slow for a known reason, as
they are and with the advice followed.

    bench/advice.py --pairs 10 --criu "$(scripts/setup --criu)"      # as root
    bench/advice.py --only cpu-wait,compression
    bench/advice.py --list

The order in each pair is random, and a first pair is left out. Prints a table for docs/phases.md: how often the rule was
named first, the medians of both, and how much shorter the dump was and should have been, by the middle of the range that
the verdict gives. The time is the standstill, or, where the advice is about it, that of the whole dump. If less than half
of the dumps have the rule, the machine did not make the cause: then the advice must save little. Ends with 1 if an
advice saves less than half or more than twice of what it promises, or 10 % or more of the time without being given. An
advice without a time (compression: how much it saves depends on the memory) must save something. The whole takes at most
--minutes: if that is too short, there are fewer pairs.

The busy programs of cpu-wait are in sessions of their own, as on a real machine. Where sched_autogroup_enabled is 1, the
advice is followed as it is given there: -20 is written to the autogroup of kymod.

Not tested, because their cause cannot be made here without harm: steal, swap, memory-pressure, host-memory, and disk-wait
of a restore. Their advice gives no time: late-answers, hooks, slow-freeze, many-files. No advice: copying, page-faults,
many-processes.
"""
import contextlib
import dataclasses
import json
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import time

import common
import inside_cost

SHAPE = inside_cost.SHAPE
NO_TMPFS = ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /run && exec "$@"']
TMPFS = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs tmpfs /run && exec "$@"', "sh"]
AUTOGROUPS = pathlib.Path("/proc/sys/kernel/sched_autogroup_enabled")


@dataclasses.dataclass
class Way:
    """How one of the two dumps is made."""
    program: list  # "churn" or "shape", and its words
    options: list = dataclasses.field(default_factory=list)  # of kymo dump
    folder: pathlib.Path | None = None  # for the images; None: a folder for temporary files
    before: list = dataclasses.field(default_factory=list)  # a command that runs kymod
    program_before: list = dataclasses.field(default_factory=list)  # and one that runs the program
    ends: bool = False  # the dump ends the program
    own_mounts: bool = False  # the program is in the mount namespace of this kymod
    autogroup: int = 0  # the nice value of the session of kymod


@dataclasses.dataclass
class Case:
    rule: str
    advice: str  # as the table shows it
    slow: Way
    better: Way
    loops: int = 0  # programs that keep the CPUs busy
    phase: str = ""  # the phase that the advice does away with; empty: the verdict has an estimate of the standstill
    fresh: bool = False  # each dump has a new program
    promises: bool = True  # False: the advice has no time
    words: str = ""  # of the advice that is followed


def churn(mib):
    return ["churn", "--mib", str(mib)]


def shape(*words):
    return ["shape", *words]


def higher_priority():
    loops = 6 * os.cpu_count()
    if AUTOGROUPS.exists() and AUTOGROUPS.read_text().startswith("1"):
        own = ["setsid"]
        return Case("cpu-wait", "-20 in the autogroup of kymod", Way(churn(256), before=own),
                    Way(churn(256), before=own, autogroup=-20), loops=loops, words="/autogroup")
    return Case("cpu-wait", "kymod with `nice -n -20`", Way(churn(256)), Way(churn(256), before=["nice", "-n", "-20"]),
                loops=loops, words="Nice=-20")


def cases(disks, on_disk):
    direct, strong = ["--no-stream"], ["--compression", "zstd", "--compression-level", "15"]
    one_cpu = ["taskset", "--cpu-list", "0"]
    compressible = shape("mappings", "64", "256")
    tmpfs = pathlib.Path("/dev/shm")
    found = [
        higher_priority(),
        Case("cross-cpu", "kymod and target on one CPU", Way(churn(512), direct),
             Way(churn(512), direct, before=one_cpu, program_before=one_cpu)),
        Case("compression", "`--compression-level 1`", Way(churn(8), strong), Way(churn(8), ["--compression", "zstd"])),
        Case("compression", "`--compression none`", Way(churn(8), strong), Way(churn(8), ["--compression", "none"])),
        Case("many-mappings", "`--log-level 1`", Way(shape("mappings", "15000", "1")),
             Way(shape("mappings", "15000", "1"), ["--log-level", "1"])),
        Case("scattered-memory", "no gaps between pages", Way(shape("scattered", "128", "1")), Way(shape("scattered", "128", "0"))),
        Case("memory-released", "`--leave-running`", Way(churn(512), ends=True), Way(churn(512)), phase="resume or end",
             fresh=True),
        Case("kernel-probed", "a tmpfs on `/run`", Way(churn(1), before=[*NO_TMPFS, on_disk], own_mounts=True),
             Way(churn(1), before=TMPFS, own_mounts=True), phase="look at the kernel"),
    ]
    if disks.get("sync"):
        found += [
            Case("disk-wait", "images on a tmpfs", Way(churn(64), folder=disks["sync"]), Way(churn(64), folder=tmpfs)),
            Case("disk-wait", "`--compression zstd`", Way(compressible, folder=disks["sync"]),
                 Way(compressible, ["--compression", "zstd"], disks["sync"]), promises=False),
        ]
    if disks.get("bounded"):
        found.append(Case("dirty-throttled", "images on a tmpfs", Way(churn(64), direct, disks["bounded"]),
                          Way(churn(64), direct, tmpfs)))
    return found


def bound_dirty_pages(path):
    """Lets at most 1 MiB wait to be written to this disk. Returns false if the kernel cannot do that."""
    device = path.stat().st_dev
    settings = pathlib.Path(f"/sys/class/bdi/{os.major(device)}:{os.minor(device)}")
    try:
        (settings / "strict_limit").write_text("1")
        (settings / "max_bytes").write_text(str(1 << 20))
    except OSError:
        return False
    return True


@contextlib.contextmanager
def slow_disks(folder):
    """The folders of two file systems on loop devices, as far as they can be made here: "sync" writes each byte at once,
    and of "bounded", hardly any page may wait to be written."""
    disks = {}
    with contextlib.ExitStack() as stack:
        for name, options in (("sync", "loop,sync"), ("bounded", "loop")):
            image, path = folder / f"{name}.img", folder / name
            path.mkdir()
            with image.open("wb") as file:
                file.truncate(1 << 30)
            commands = (["mkfs.ext4", "-q", "-F", image], ["mount", "-o", options, image, path])
            if any(subprocess.run(command, capture_output=True).returncode for command in commands):
                continue
            stack.callback(common.wait_until, lambda at=path: subprocess.run(["umount", at], capture_output=True).returncode == 0,
                           "a disk stays in use")
            if name == "sync" or bound_dirty_pages(path):
                disks[name] = path
        yield disks


class Side:
    """One way of a case: its kymod and its program."""

    def __init__(self, arguments, folder, way):
        self.arguments, self.way, self.folder = arguments, way, folder
        self.daemon = inside_cost.Daemon(arguments, folder, [], way.before)
        if way.autogroup:
            pathlib.Path(f"/proc/{self.daemon.kymod.process.pid}/autogroup").write_text(str(way.autogroup))
        self.process = None
        self.dumps = 0

    def start(self):
        kind, *words = self.way.program
        churns = kind == "churn"
        command = [self.arguments.build.resolve() / "examples/churn/kymo-churn"] if churns else [sys.executable, SHAPE]
        said = self.folder / "said"
        said.unlink(missing_ok=True)
        mounts = ["nsenter", f"--mount=/proc/{self.daemon.kymod.process.pid}/ns/mnt", "--"] if self.way.own_mounts else []
        # What it has open must be of the mount namespace that it is in.
        opens = ["sh", "-c", 'exec "$@" </dev/null >"$0" 2>&1', said]
        self.process = subprocess.Popen([*mounts, *self.way.program_before, *opens, *command, *words], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        common.wait_until(lambda: said.exists() and said.stat().st_size, f"{kind} does not start")

    def end_program(self):
        if self.process:
            self.process.kill()
            self.process.wait()
        self.process = None

    def dump(self, fresh):
        """Returns the record of a dump."""
        if fresh or not self.process:
            self.end_program()
            self.start()
        self.dumps += 1
        target = (self.way.folder or self.folder) / f"kymo-bench-{os.getpid()}-{self.folder.name}-{self.dumps}"
        running = [] if self.way.ends else ["--leave-running"]
        self.daemon.ask("dump", "process", str(self.process.pid), *running, "--dir", target, *self.way.options)
        record = json.loads((target / "checkpoint.json").read_text())
        shutil.rmtree(target)
        return record

    def stop(self):
        self.end_program()
        self.daemon.kymod.stop()


def pairs_of(case, arguments, folder, until):
    """The records of both dumps, for each pair."""
    with contextlib.ExitStack() as stack:
        for _ in range(case.loops):
            loop = subprocess.Popen(["sh", "-c", "while :; do :; done"], start_new_session=True)
            stack.callback(loop.wait)
            stack.callback(loop.kill)
        sides = {}
        for name in ("slow", "better"):
            sides[name] = Side(arguments, folder / name, getattr(case, name))
            stack.callback(sides[name].stop)
        pairs = []
        for number in range(arguments.pairs + 1):
            pair = {name: sides[name].dump(case.fresh) for name in random.sample(list(sides), len(sides))}
            if number:
                pairs.append(pair)
            if time.monotonic() > until and len(pairs) > 2:
                break
        return pairs


def phase_ns(record, name):
    return sum(phase["end_ns"] - phase["begin_ns"] for phase in record["phases"] if phase["name"] == name)


def time_ns(case, record):
    return record["duration_ns"] if case.phase else record["verdict"]["frozen_ns"]


def promise_of(case, record):
    """How much shorter the dump should be, in nanoseconds. None if the rule was not named."""
    for finding in record["verdict"]["findings"]:
        if finding["rule"] != case.rule:
            continue
        if case.phase:
            return phase_ns(record, case.phase)
        if not case.promises:
            return 0
        if "estimate_ns" in finding:
            return time_ns(case, record) - statistics.mean(finding["estimate_ns"])
    return None


def judge(case, pairs):
    """Prints the row of a case. Returns whether the advice does what it promises."""
    findings = [pair["slow"]["verdict"]["findings"] for pair in pairs]
    first = sum(bool(found) and found[0]["rule"] == case.rule for found in findings)
    promises = [made for pair in pairs if (made := promise_of(case, pair["slow"])) is not None]
    slow, better = ([time_ns(case, pair[way]) for pair in pairs] for way in ("slow", "better"))
    saved = statistics.median(a - b for a, b in zip(slow, better))
    named = 2 * len(promises) >= len(pairs)
    promised = statistics.median(promises) if named else 0
    followed = [finding["advice"] for found in findings for finding in found if finding["rule"] == case.rule]
    if any(case.words not in advice for advice in followed):
        kept, words = False, f"**no: the advice was another one**: {followed[0]}"
    elif named and not case.promises:
        kept = saved > 0
        words = "no time is promised" if kept else "**no: it did not help**"
    elif named:
        kept = promised / 2 <= saved <= promised * 2
        words = "yes" if kept else "**no**"
    else:
        kept = saved < statistics.median(slow) / 10
        words = "not given here, and rightly" if kept else "**no: it was not given**"
    cells = [f"`{case.rule}`", case.advice, f"{first} of {len(pairs)}", f"{statistics.median(slow) / 1e6:,.0f} ms",
             f"{statistics.median(better) / 1e6:,.0f} ms", f"{saved / 1e6:,.0f} ms",
             f"{promised / 1e6:,.0f} ms" if named and case.promises else "", words]
    print("| " + " | ".join(cells) + " |", flush=True)
    return kept


def parser_of():
    parser = common.parser_of(__doc__)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--minutes", type=float, default=15, help="for all cases together (default 15)")
    parser.add_argument("--only", default="", help="rules, separated by commas")
    parser.add_argument("--list", action="store_true", help="print the rules and the advice of each, and end")
    parser.add_argument("--folder", default="/var/tmp", help="folder on a disk, for the images and the loop devices")
    parser.add_argument("--build", type=pathlib.Path, default=common.BUILD)
    parser.add_argument("--criu", default=common.CRIU)
    return parser


def chosen(arguments, disks, folder):
    found = cases(disks, folder / "run")
    rules = {case.rule for case in found}
    wanted = set(filter(None, arguments.only.split(","))) or rules
    if unknown := wanted - rules:
        sys.exit(f"advice: no such rule here: {', '.join(sorted(unknown))}; there are {', '.join(sorted(rules))}")
    return [case for case in found if case.rule in wanted]


def main():
    arguments = parser_of().parse_args()
    if arguments.list:
        for case in cases({"sync": pathlib.Path("/"), "bounded": pathlib.Path("/")}, pathlib.Path("/")):
            print(f"{case.rule:18}{case.advice}")
        return 0
    samples, kept = {}, []
    with common.scratch_folder(arguments.folder) as folder, slow_disks(folder) as disks:
        (folder / "run").mkdir()
        to_do = chosen(arguments, disks, folder)
        if not arguments.json:
            missing = [name for name in ("sync", "bounded") if name not in disks]
            print(f"{arguments.pairs} pairs; {os.cpu_count()} cores, kernel {os.uname().release}"
                  + (f"; no such loop device here: {', '.join(missing)}" if missing else "") + "\n")
            print("| rule | advice | named first | as it was | with the advice | shorter by | promised | within a factor of two |")
            print("| --- | --- | --- | --- | --- | --- | --- | --- |", flush=True)
        began = time.monotonic()
        for number, case in enumerate(to_do):
            own = folder / f"case-{number}"
            own.mkdir()
            pairs = pairs_of(case, arguments, own, began + 60 * arguments.minutes * (number + 1) / len(to_do))
            for way in ("slow", "better"):
                samples[f"{case.rule}: {case.advice}: {way}"] = [time_ns(case, pair[way]) for pair in pairs]
            if not arguments.json:
                kept.append(judge(case, pairs))
    if arguments.json:
        print(json.dumps({"samples": samples}))
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
