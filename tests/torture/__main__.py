"""scripts/torture: disturbs kymod and checks each time that nothing is frozen, lost or misreported."""

import argparse
import signal
import sys
import time

import deeds
from checks import Checks
from eventually import eventually
from seams import Seams
from world import SERVERS, World

KINDS = ("process", "connection", "runc", "podman", "containerd", "docker")


class Torture:
    def __init__(self, world, kinds, verbose):
        self.world, self.verbose = world, verbose
        self.checks = Checks(world, kinds)
        self.seams = Seams(self.checks)

    def turn(self):
        choose = self.world.random
        subject = choose.choice(self.checks.subjects)
        if subject.checkpoint is not None and choose.random() < 0.6:
            self.seams.do(subject, choose.choice(self.seams.of(subject)))
            self.say()
        elif subject.checkpoint is not None:
            self.restore(subject)
        elif choose.random() < 0.1:
            self.freeze(subject)
        else:
            self.dump(subject)
        self.checks.check_all()

    def say(self):
        if self.verbose:
            print(f"torture: {time.strftime('%H:%M:%S')} {self.checks.last}", flush=True)

    def send(self, subject, words):
        kymod, checks = subject.kymod, self.checks
        disturbance, code, said = deeds.request(self.world, subject, words)
        checks.last = f"{' '.join(map(str, words))} ({disturbance.kind} after {disturbance.after:.2f} s)" \
                      f" -> {code} {said[-300:]}"
        checks.count(disturbance.kind, subject)
        checks.count("programs that were stopped", subject, disturbance.stopped)
        checks.count("programs that were killed", subject, disturbance.killed)
        self.say()
        if code is None:
            checks.violated(f"no answer within {deeds.LONGEST} s")
        if disturbance.daemon_died or kymod.ended():
            if not disturbance.daemon_died:
                checks.violated(f"kymod ended by itself ({kymod.process.returncode})")
            checks.start(kymod)
        if not eventually(kymod.idle, deeds.LONGEST):
            checks.violated("a request does not end")
        return disturbance, code, said

    def dump(self, subject):
        words, place, leave = deeds.dump_words(self.world, subject)
        subject.restore_was_ended = False
        disturbance, code, said = self.send(subject, words)
        self.checks.count("dumps" if code == 0 else "dumps that failed", subject)
        if code == 0:
            subject.checkpoint, subject.keeper = None if leave else place, subject.kymod
            if disturbance.killed and not (answer := subject.kymod.kymo("verify", place)):
                self.checks.violated(f"CRIU was killed, and {place} is said to be whole: {answer.out}")
        elif not disturbance.kind.endswith(("kymod", "client")):
            # The deadline may pass, or the request may be cancelled, while the disk does not take the complete images.
            written = ("has ended, and its whole images are in memory" in said or
                       not leave and "the images are written, but their disk does not answer" in said)
            expected = str(place) if written else "running"
            if self.checks.where(subject) != expected:
                self.checks.violated(f"{subject.name} is not {expected}, though its dump failed")
        self.checks.find(subject)
        if subject.lost_connection():
            self.checks.violated(f"{subject.name} has lost its connection in a dump")
        if subject.checkpoint is None and code == 0:
            self.checks.delete(subject.kymod, place)

    def restore(self, subject):
        before, place, keeper = subject.count(), subject.checkpoint, subject.keeper
        disturbance, code, _ = self.send(subject, ("restore", place))
        self.checks.count("restores" if code == 0 else "restores that failed", subject)
        if code == 0:
            subject.checkpoint = None
        self.checks.find(subject)
        if subject.lost_connection():
            self.checks.lost_in_restore(subject, undisturbed=disturbance.kind in ("nothing", "flood"))
        if subject.checkpoint is None:
            self.checks.has_not_gone_back(subject, before)
            self.checks.delete(keeper, place)
        else:
            subject.restore_was_ended = True

    def freeze(self, subject):
        frozen = subject.kymod.kymo("freeze", subject.runtime, subject.name)
        self.checks.last = f"freeze {subject.name} -> {frozen.code} {frozen.err}"
        self.checks.count("freezes", subject)
        if frozen and subject.moves(0.5):
            self.checks.violated(f"{subject.name} counts while it is frozen")
        if frozen and not subject.said(subject.kymod).get("frozen"):
            self.checks.violated(f"{subject.name} is frozen and not said to be")
        thawed = subject.kymod.kymo("unfreeze", subject.runtime, subject.name)
        if frozen and not thawed:
            self.checks.violated(f"{subject.name} is not unfrozen: {thawed.err}")

    def end(self):
        for subject in self.checks.subjects:
            if subject.checkpoint is not None:
                self.checks.last = f"the last restore of {subject.name}"
                answer = subject.kymod.kymo("restore", subject.checkpoint)
                if not answer or not subject.moves():
                    self.checks.violated(f"{subject.checkpoint} cannot be restored: {answer.err}")
            name = subject.said(subject.kymod).get("name", subject.name)
            subject.kymod.kymo("kill", name, "--signal", "KILL", "--wait")
        self.checks.last = "SIGTERM"
        for kymod in self.world.kymods:
            if (ended := kymod.stop()) != 0:
                self.checks.violated("kymod does not stop" if ended is None else f"kymod stopped with {ended}")


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
    done = 0
    try:
        for kind in SERVERS:
            if kind in kinds and (why := world.begin_server(kind)):
                print(f"torture: without containers of {kind}: {why}", flush=True)
                kinds.remove(kind)
        if not kinds:
            raise SystemExit("torture: there is nothing to torture")
        if kymod := world.start():
            raise SystemExit(f"torture: kymod does not start: {kymod.log_text()[-1000:]}")
        torture = Torture(world, kinds, arguments.verbose)
        until = time.monotonic() + arguments.minutes * 60
        while time.monotonic() < until and len(torture.checks.violations) < 20:
            torture.turn()
            done += 1
        torture.end()
        if torture.checks.violations:
            print(*(f"log of the {kymod.name} kymod:\n{kymod.log_text()[-4000:]}" for kymod in world.kymods))
    finally:
        world.close()
    print("\n".join(torture.checks.table()))
    print(f"torture: seed {arguments.seed}: {done} deeds, {len(torture.checks.violations)} violations")
    return 1 if torture.checks.violations else 0


sys.exit(main())
