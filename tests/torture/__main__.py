"""scripts/torture: disturbs kymod and checks each time that nothing is frozen, lost or misreported."""

import argparse
import collections
import pathlib
import shutil
import signal
import sys
import time

import deeds
from eventually import eventually
from world import SERVERS, Subject, World

KINDS = ("process", "connection", "runc", "podman", "containerd", "docker")
# In seconds. After a disturbance has ended, everything must be right within this time. Like all limits here, it only ends
# the wait for something that never happens, because a busy machine may be slow.
SETTLES = 120


class Torture:
    def __init__(self, world, kinds, verbose):
        self.world = world
        self.verbose = verbose
        self.counts = collections.Counter()
        self.violations = []
        self.last = ""
        self.subjects = [Subject(world, kind) for kind in kinds for _ in range(2 if kind == "process" else 1)]
        for subject in self.subjects:
            if not subject.started or not subject.moves():
                raise SystemExit(f"torture: cannot begin: {subject.name}: {subject.started.err}")

    def violated(self, what):
        self.violations.append(f"{what}, after: {self.last}")
        print(f"torture: VIOLATION: {self.violations[-1]}", flush=True)

    def turn(self):
        subject = self.world.random.choice(self.subjects)
        if subject.checkpoint is not None and subject.kind == "process" and self.world.random.random() < 0.2:
            self.restore_twice(subject)
        elif subject.checkpoint is not None:
            self.restore(subject)
        elif self.world.random.random() < 0.15:
            self.freeze(subject)
        else:
            self.dump(subject)
        for other in self.subjects:
            self.check(other)
        self.check_leftovers()

    def send(self, subject, words):
        disturbance, code, said = deeds.request(self.world, subject, words)
        self.last = f"{' '.join(map(str, words))} ({disturbance.kind} after {disturbance.after:.2f} s)" \
                    f" -> {code} {said[-300:]}"
        self.counts[disturbance.kind] += 1
        self.counts["processes of CRIU that were stopped"] += disturbance.criu_stopped
        self.counts["processes of CRIU that were killed"] += disturbance.criu_killed
        if self.verbose:
            print(f"torture: {self.last}", flush=True)
        if code is None:
            self.violated(f"no answer within {deeds.LONGEST} s")
        if disturbance.daemon_died or self.world.daemon.poll() is not None:
            if not disturbance.daemon_died:
                self.violated(f"kymod ended by itself ({self.world.daemon.returncode})")
            if not self.world.start():
                self.violated("kymod does not start again")
                raise SystemExit(1)
        if not eventually(self.world.idle, deeds.LONGEST):
            self.violated("a request does not end")
        return disturbance, code, said

    def dump(self, subject):
        words, place, leave = deeds.dump_words(self.world, subject)
        disturbance, code, said = self.send(subject, words)
        self.counts["dumps" if code == 0 else "dumps that failed"] += 1
        if code == 0:
            subject.checkpoint = None if leave else place
            if disturbance.criu_killed and not (answer := self.world.kymo("verify", place)):
                self.violated(f"CRIU was killed, and {place} is said to be whole: {answer.out}")
        elif not disturbance.kind.endswith(("kymod", "client")):
            # The deadline may pass, or the request may be cancelled, while the disk does not take the complete images.
            written = ("has ended, and its whole images are in memory" in said or
                       not leave and "the images are written, but their disk does not answer" in said)
            expected = str(place) if written else "running"
            if self.where(subject) != expected:
                self.violated(f"{subject.name} is not {expected}, though its dump failed")
        self.find(subject)
        if subject.lost_connection():
            self.violated(f"{subject.name} has lost its connection in a dump")
        if subject.checkpoint is None and code == 0:
            self.delete(place)

    def restore(self, subject):
        before = subject.count()
        place = subject.checkpoint
        disturbance, code, _ = self.send(subject, subject.restore_words())
        self.counts["restores" if code == 0 else "restores that failed"] += 1
        if code == 0:
            subject.checkpoint = None
        self.find(subject)
        if subject.lost_connection():
            self.lost_in_restore(subject, disturbance)
        if subject.checkpoint is None:
            if subject.count() < before:
                self.violated(f"{subject.name} counts from {subject.count()}, and had come to {before}")
            self.delete(place)

    def lost_in_restore(self, subject, disturbance):
        """If a restore is ended after the network was unblocked, the connection is closed and cannot be restored."""
        self.counts["connections that a disturbed restore has lost"] += 1
        if disturbance.kind in ("nothing", "flood"):
            self.violated(f"{subject.name} has lost its connection in a restore")

    def restore_twice(self, subject):
        """Restores two copies of a checkpoint at the same time. One must succeed, and the other must be refused."""
        before, place = subject.count(), subject.checkpoint
        copy = self.world.new_place("plain")
        # Without the recordings, which kymod may still write.
        shutil.copytree(place, copy, ignore=shutil.ignore_patterns("recordings"))
        answers = self.world.kymo_at_once([("restore", place), ("restore", copy)])
        self.last = f"two restores of copies at once -> {[(answer.code, answer.err) for answer in answers]}"
        self.counts["restores of two copies at once"] += 1
        # If another program has taken the pid meanwhile, this is not kymod's fault.
        taken = any("(failure pid-taken;" in answer.err for answer in answers)
        self.counts["restores whose pid was taken"] += taken
        if sum(map(bool, answers)) != 1 and not (taken and not any(answers)):
            self.violated("not exactly one of two restores succeeded")
        self.find(subject)
        if subject.checkpoint is None:
            if subject.count() < before:
                self.violated(f"{subject.name} counts from {subject.count()}, and had come to {before}")
            self.delete(place)
        shutil.rmtree(copy, ignore_errors=True)

    def delete(self, place):
        answer = self.world.kymo("delete", place)
        if not answer or place.exists():
            self.violated(f"{place} is not deleted: {answer.out} {answer.err}")

    def freeze(self, subject):
        frozen = self.world.kymo("freeze", subject.runtime, subject.name)
        self.last = f"freeze {subject.name} -> {frozen.code} {frozen.err}"
        self.counts["freezes"] += 1
        if frozen and subject.moves(0.5):
            self.violated(f"{subject.name} counts while it is frozen")
        jobs = self.world.jobs() or {}
        if frozen and not jobs.get(subject.name, {}).get("frozen"):
            self.violated(f"{subject.name} is frozen and not said to be")
        thawed = self.world.kymo("unfreeze", subject.runtime, subject.name)
        if frozen and not thawed:
            self.violated(f"{subject.name} is not unfrozen: {thawed.err}")

    def where(self, subject):
        """Where the subject is, from outside and according to kymod: "running", the path of its checkpoint, or "" if
        neither."""
        def look():
            if subject.moves(1.5):
                return "running"
            job = (self.world.jobs() or {}).get(subject.name)
            return job["last_checkpoint"] if job and job["state"] == "dumped" and job["last_checkpoint"] else ""
        return eventually(look, SETTLES)

    def find(self, subject):
        """Checks what became of the subject after a disturbed request."""
        where = self.where(subject)
        if not where:
            self.violated(f"{subject.name} is lost: it does not count, and there is no checkpoint of it")
            self.replace(subject)
        elif where == "running":
            subject.checkpoint = None
        elif subject.checkpoint is None or str(subject.checkpoint) != where:
            subject.checkpoint = pathlib.Path(where)

    def replace(self, subject):
        self.subjects[self.subjects.index(subject)] = Subject(self.world, subject.kind)

    def check(self, subject):
        expected = "dumped" if subject.checkpoint is not None else "running"
        if expected == "running" and not subject.moves():
            self.violated(f"{subject.name} stands still")

        def said():
            job = (self.world.jobs() or {}).get(subject.name, {})
            return job.get("state") == expected and not job.get("frozen")
        if not eventually(said, SETTLES):
            self.violated(f"{subject.name} is {expected}, and ps says {(self.world.jobs() or {}).get(subject.name)}")
        if subject.checkpoint is not None and not (subject.checkpoint / "images").is_dir():
            self.violated(f"{subject.checkpoint} is listed and has no images")

    def check_leftovers(self):
        if not eventually(lambda: not self.world.criu_processes(), SETTLES):
            self.violated(f"CRIU is left: {self.world.criu_processes()}")
        # An empty folder is left if kymod was killed before it could list the checkpoint.
        half = [path for disk in ("plain", "moody", "small", "state")
                for path in (self.world.folder / disk).glob("**/images.partial") if any(path.iterdir())]
        if half and not eventually(lambda: not any(path.exists() for path in half), SETTLES):
            self.violated(f"half images are left: {half}")

    def end(self):
        for subject in self.subjects:
            if subject.checkpoint is not None:
                self.last = f"the last restore of {subject.name}"
                if not (answer := self.world.kymo(*subject.restore_words())) or not subject.moves():
                    self.violated(f"{subject.checkpoint} cannot be restored: {answer.err}")
            self.world.kymo("kill", subject.name, "--signal", "KILL", "--wait")
        self.last = "SIGTERM"
        if (ended := self.world.stop()) != 0:
            self.violated("kymod does not stop" if ended is None else f"kymod stopped with {ended}")


def main():
    parser = argparse.ArgumentParser(prog="scripts/torture", description=__doc__)
    parser.add_argument("minutes", nargs="?", type=float, default=3)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    parser.add_argument("--only", choices=KINDS, action="append", help="use only this runtime (may be repeated)")
    parser.add_argument("--verbose", action="store_true", help="print each request and how it ended")
    arguments = parser.parse_args()
    print(f"torture: seed {arguments.seed}, {arguments.minutes:g} minutes", flush=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    world = World(arguments.seed)
    kinds = list(arguments.only or KINDS)
    try:
        for kind in SERVERS:
            if kind in kinds and (why := world.begin_server(kind)):
                print(f"torture: without containers of {kind}: {why}", flush=True)
                kinds.remove(kind)
        if not kinds:
            raise SystemExit("torture: there is nothing to torture")
        if not world.start():
            raise SystemExit(f"torture: kymod does not start: {world.log.read_text()[-1000:]}")
        torture = Torture(world, kinds, arguments.verbose)
        until = time.monotonic() + arguments.minutes * 60
        while time.monotonic() < until and len(torture.violations) < 20:
            torture.turn()
            torture.counts["deeds"] += 1
        torture.end()
        if torture.violations:
            print(world.log.read_text(errors="replace")[-4000:])
    finally:
        world.close()
    for name, count in sorted(torture.counts.items()):
        print(f"{count:7} {name}")
    print(f"torture: seed {arguments.seed}: {torture.counts['deeds']} deeds, {len(torture.violations)} violations")
    return 1 if torture.violations else 0


sys.exit(main())
