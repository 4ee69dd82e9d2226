"""What is promised after each deed: it counts, or it is restored and counts, and kymod says which."""

import collections
import pathlib

from eventually import eventually
from subject import Subject

# In seconds. After a disturbance has ended, everything must be right within this time. Like all limits here, it only ends
# the wait for something that never happens, because a busy machine may be slow.
SETTLES = 120


class Checks:
    """`last`: the deed that is checked. `counts`: how often something happened to a kind of subject."""

    def __init__(self, world, kinds):
        self.world = world
        self.counts = collections.Counter()
        self.violations = []
        self.last = ""
        self.subjects = [Subject(world, kind) for kind in kinds for _ in range(2 if kind == "process" else 1)]
        for subject in self.subjects:
            if not subject.started or not subject.moves():
                raise SystemExit(f"torture: cannot begin: {subject.name}: {subject.started.err}")

    def count(self, what, subject, times=1):
        if times:
            self.counts[what, subject.kind] += int(times)

    def violated(self, what):
        self.violations.append(f"{what}, after: {self.last}")
        print(f"torture: VIOLATION: {self.violations[-1]}", flush=True)

    def start(self, kymod, *more):
        """Starts a kymod that has ended."""
        if not kymod.start(*more):
            self.violated("kymod does not start again")
            raise SystemExit(1)

    def delete(self, kymod, place):
        """kymod may refuse until it knows how a restore has ended that a kill has left to the runtime."""
        answers = []

        def is_deleted():
            answers.append(kymod.kymo("delete", place))
            return answers[-1] or not place.exists()
        if not eventually(is_deleted, SETTLES) or place.exists():
            self.violated(f"{place} is not deleted: {answers[-1].out} {answers[-1].err}")

    def where(self, subject):
        """Where the subject is, from outside and according to its kymod: "running", the path of its checkpoint, or "" if
        neither."""
        def look():
            if subject.moves(1.5):
                return "running"
            job = subject.said(subject.kymod)
            return job["last_checkpoint"] if job and job["state"] == "dumped" and job["last_checkpoint"] else ""
        return eventually(look, SETTLES)

    def find(self, subject):
        """Checks what became of the subject after a deed."""
        where = self.where(subject)
        if not where:
            self.violated(f"{subject.name} is lost: it does not count, and there is no checkpoint of it")
            self.replace(subject)
        elif where == "running":
            subject.checkpoint = None
        elif subject.checkpoint is None or str(subject.checkpoint) != where:
            subject.checkpoint, subject.keeper = pathlib.Path(where), subject.kymod

    def replace(self, subject):
        self.subjects[self.subjects.index(subject)] = Subject(self.world, subject.kind)

    def has_not_gone_back(self, subject, before):
        if subject.count() < before:
            self.violated(f"{subject.name} counts from {subject.count()}, and had come to {before}")

    def lost_in_restore(self, subject, undisturbed):
        """If a restore is ended after the network was unblocked, the connection is closed and cannot be restored."""
        self.count("connections lost in a restore", subject)
        if undisturbed and not subject.restore_was_ended:
            self.violated(f"{subject.name} has lost its connection in a restore")

    def check_all(self):
        for subject in self.subjects:
            self.check(subject)
        self.check_leftovers()

    def check(self, subject):
        expected = "dumped" if subject.checkpoint is not None else "running"
        if expected == "running" and not subject.moves():
            self.violated(f"{subject.name} stands still")
        if expected == "running" and not eventually(subject.has_its_root, SETTLES):
            self.violated(f"{subject.name} has lost the files of its root")
        if not eventually(lambda: len(subject.copies()) == (expected == "running"), SETTLES):
            self.violated(f"{subject.name} is {expected}, and these processes count: {subject.copies()}")

        def said():
            job = subject.said(subject.kymod)
            return job.get("state") == expected and not job.get("frozen")
        if not eventually(said, SETTLES):
            self.violated(f"{subject.name} is {expected}, and ps says {subject.said(subject.kymod)}")
        if subject.checkpoint is not None and not (subject.checkpoint / "images").is_dir():
            self.violated(f"{subject.checkpoint} is listed and has no images")
        # Another kymod does not know what became of it after that kymod had it.
        other = self.world.other(subject.kymod)
        if expected == "dumped" and not eventually(lambda: subject.said(other).get("state") != "running", SETTLES):
            self.violated(f"{subject.name} is {expected}, and ps of another kymod says {subject.said(other)}")

    def check_leftovers(self):
        if not eventually(lambda: not self.world.criu_processes(), SETTLES):
            self.violated(f"CRIU is left: {self.world.criu_processes()}")
        # An empty folder is left if kymod was killed before it could list the checkpoint.
        half = [path for disk in ("plain", "moody", "small", "state", "second")
                for path in (self.world.folder / disk).glob("**/images.partial") if any(path.iterdir())]
        if half and not eventually(lambda: not any(path.exists() for path in half), SETTLES):
            self.violated(f"half images are left: {half}")

    def table(self):
        """The counts, one line for each thing, with a column for each kind of subject."""
        kinds = list(dict.fromkeys(subject.kind for subject in self.subjects))
        things = sorted({what for what, _ in self.counts})
        yield f"{'':36}" + "".join(f"{kind:>12}" for kind in ["all", *kinds])
        for what in things:
            numbers = [self.counts[what, kind] for kind in kinds]
            yield f"{what:36}" + "".join(f"{number:12}" for number in [sum(numbers), *numbers])
