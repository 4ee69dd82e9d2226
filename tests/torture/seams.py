"""Deeds between two: two restores, two kymods, a restore and a deletion, or kymod and somebody else, at the same time."""

import pathlib
import shutil
import signal
import time

from eventually import eventually
from kymod import answer_of

NOTICED = 7  # seconds in which a kymod that was killed in a restore by another program has seen how that ended
# The restores of these go on without kymod, and for a moment there may be no program that shows it.
OUTLIVE_KYMOD = ("podman", "containerd", "docker")


def told(answers):
    return [(answer.code, answer.err[-300:]) for answer in answers]


class Seams:
    def __init__(self, checks):
        self.checks, self.world, self.random = checks, checks.world, checks.world.random

    def of(self, subject):
        """The names of the deeds that can be done to a subject that has a checkpoint."""
        return ["two copies, one kymod", "one checkpoint, two kymods", "two copies, two kymods", "deleted in a restore",
                "deleted after a kill", "limited after a kill"] + \
            (["started by somebody else"] if subject.is_container else [])

    def do(self, subject, deed):
        self.checks.count(deed, subject)
        self.method(deed)(subject)

    def method(self, deed):
        return getattr(self, "_" + deed.replace(",", "").replace(" ", "_"))

    # Two restores at the same time: exactly one must succeed.

    def _two_copies_one_kymod(self, subject):
        self._restore_at_once(subject, [subject.kymod, subject.kymod], copy=True)

    def _one_checkpoint_two_kymods(self, subject):
        self._restore_at_once(subject, self.world.kymods, copy=False)

    def _two_copies_two_kymods(self, subject):
        self._restore_at_once(subject, self.world.kymods, copy=True)

    def _restore_at_once(self, subject, kymods, copy):
        """At random, one of the kymods is killed meanwhile."""
        place = subject.checkpoint
        places = [place, self._copy(place) if copy else place]
        kymods = self.random.sample(kymods, 2)
        victim = kymods[0] if self.random.random() < 0.25 else None
        before = subject.count()
        clients = []
        for kymod, path in zip(kymods, places):
            clients.append(kymod.begin("restore", path))
            time.sleep(self._moment() if self.random.random() < 0.5 else 0)
        if victim:
            time.sleep(self._moment())
            victim.stop(signal.SIGKILL)
        answers = [answer_of(client) for client in clients]
        if victim:
            self.checks.start(victim)
        self.checks.last = f"restores of {subject.name} at once from {places} by {[one.name for one in kymods]}" \
                           f"{' and a kill of ' + victim.name if victim else ''} -> {told(answers)}"
        # If another program has taken the pid meanwhile, this is not kymod's fault.
        taken = any("(failure pid-taken;" in answer.err for answer in answers)
        won = [kymod for kymod, answer in zip(kymods, answers) if answer]
        self.checks.count("restores whose pid was taken", subject, taken)
        if len(won) > 1 or not won and not taken and not victim:
            self.checks.violated(f"{len(won)} of two restores succeeded")
        self._settle(subject, won, before, undisturbed=not victim)
        if copy:
            shutil.rmtree(places[1], ignore_errors=True)

    # A restore and a deletion.

    def _deleted_in_a_restore(self, subject):
        """The kymod that has the checkpoint deletes it while it restores it, or while the other one does."""
        place, before = subject.checkpoint, subject.count()
        kept = self._copy(place)
        restorer = self.random.choice(self.world.kymods)
        client = restorer.begin("restore", place)
        begun = self._begun(restorer, client)
        time.sleep(self._moment())
        deleted = subject.keeper.kymo("delete", place)
        answer = answer_of(client)
        self.checks.last = f"delete {place} by {subject.keeper.name} while {restorer.name} restored it -> " \
                           f"{told([deleted, answer])}"
        if answer or place.exists() and subject.keeper.kymo("verify", place):
            self._settle(subject, [restorer] if answer else [], before, undisturbed=bool(answer))
            shutil.rmtree(kept)
        else:
            # Before the restore has begun, a deletion may win.
            if begun:
                self.checks.violated(f"{subject.name} does not run, and its images were deleted in a restore")
            self._restore_kept(subject, kept, before)

    def _deleted_after_a_kill(self, subject):
        """kymod is killed in a restore, and the next one is asked at once to delete the checkpoint."""
        place, before, kymod = subject.checkpoint, subject.count(), subject.kymod
        kept = self._copy(place)
        begun = self._kill_in_restore(kymod, place)
        self.checks.start(kymod)
        goes_on = bool(subject.restorers()) or begun and subject.kind in OUTLIVE_KYMOD
        deleted = subject.keeper.kymo("delete", place)
        self.checks.last = f"delete {place} by {subject.keeper.name} after a kill of {kymod.name}, which restored it" \
                           f" -> {told([deleted])}"
        until = time.monotonic() + NOTICED
        while not (runs := subject.moves(1)) and not (place / "images").exists() and \
                goes_on and time.monotonic() < until:
            pass
        if runs or (place / "images").exists():
            self._settle(subject, [], before)
            shutil.rmtree(kept)
        else:
            # A restore that kymod has ended, or that had not begun, needs no images.
            if goes_on:
                self.checks.violated(f"{subject.name} does not run, and its images were deleted in a restore")
            self._restore_kept(subject, kept, before)

    def _limited_after_a_kill(self, subject):
        """kymod is killed in the restore of the older or the newer of two checkpoints, and the next one keeps only the
        newest."""
        kymod = subject.kymod
        older, newer = [self.world.new_place("state", kymod) for _ in range(2)]
        steps = [("restore", subject.checkpoint), ("dump", subject.runtime, subject.name, "--leave-running", "--dir", older),
                 ("dump", subject.runtime, subject.name, "--dir", newer)]
        steps = [[*words, "--tcp-established"] if words[0] == "dump" and subject.kind == "connection" else words
                 for words in steps]
        at_older = 0
        for words in steps:
            answer = kymod.kymo(*words)
            self.checks.last = f"{' '.join(map(str, words))} -> {told([answer])}"
            if not answer:
                self._give_up(subject, older)
                return
            if words[0] == "restore":
                self.checks.delete(subject.keeper, subject.checkpoint)
                subject.checkpoint, at_older = None, subject.count()
        subject.checkpoint, subject.keeper = newer, kymod
        # The other end of a connection goes on after the older one, so the connection of that is not restored.
        restored = newer if subject.kind == "connection" else self.random.choice([older, newer])
        before = subject.count() if restored == newer else at_older
        self._kill_in_restore(kymod, restored)
        self.checks.start(kymod, "--keep-count", "1")
        self.checks.last = f"a kill of {kymod.name}, which restored {restored}, and a start with --keep-count 1"
        if not eventually(lambda: subject.moves(1) or (newer / "images").is_dir(), NOTICED):
            self.checks.violated(f"{subject.name} does not run, and the newest checkpoint {newer} is gone")
        self._settle(subject, [], before)
        kymod.kymo("delete", older)

    def _give_up(self, subject, older):
        """A step before a deed has failed, such as a dump without room."""
        self.checks.count("deeds that could not begin", subject)
        self.checks.find(subject)
        subject.kymod.kymo("delete", older)

    # Somebody else.

    def _started_by_somebody_else(self, subject):
        """Somebody starts the container without kymod while kymod restores it. Whoever comes second leaves it alone."""
        place, before, kymod = subject.checkpoint, subject.count(), subject.kymod
        begin = [lambda: kymod.begin("restore", place), subject.start_elsewhere]
        first = self.random.choice([0, 0, 1])
        running = {first: begin[first]()}
        time.sleep(self._moment())
        running[1 - first] = begin[1 - first]()
        answer = answer_of(running[0])
        started = running[1].wait(timeout=120) == 0
        self.checks.last = f"restore {place}, and somebody else starts {subject.name} -> {told([answer])}, " \
                           f"{'started' if started else 'not started'} by somebody else"
        self.checks.count("containers that somebody else started", subject, started and not answer)
        if answer or not started:
            self._settle(subject, [kymod] if answer else [], before)
            return
        if not subject.moves() or not eventually(subject.has_its_root, 10):
            self.checks.violated(f"{subject.name}, which somebody else started, does not run on")
        subject.end_elsewhere()
        eventually(lambda: not subject.copies(), 60)
        # For kymod, the job may have run and ended by now. Its checkpoint is as it was.
        if not (restored := kymod.kymo("restore", place)):
            self.checks.violated(f"{place} cannot be restored: {restored.err}")
        self._settle(subject, [kymod] if restored else [], before)

    # Parts of deeds.

    def _moment(self):
        return self.random.uniform(0, 0.7) ** 2 * 2

    def _copy(self, place):
        copy = self.world.new_place("plain")
        # Without the recordings, which kymod may still write.
        shutil.copytree(place, copy, ignore=shutil.ignore_patterns("recordings", "*.sock"))
        return copy

    @staticmethod
    def _begun(kymod, client):
        """Waits until kymod restores, which it notes. False if the request has ended before that was seen."""
        while client.poll() is None:
            if kymod.restores():
                return True
            time.sleep(0.002)
        return False

    def _kill_in_restore(self, kymod, place):
        client = kymod.begin("restore", place)
        self._begun(kymod, client)
        time.sleep(self._moment())
        kymod.stop(signal.SIGKILL)
        answer_of(client)
        return kymod.restores()

    def _settle(self, subject, won, before, undisturbed=False):
        """Finds out where the subject is, and which kymod has it. `undisturbed`: its restore loses no connection."""
        place, keeper = subject.checkpoint, subject.keeper
        if won:
            subject.kymod = won[0]
        elif subject.moves(1.5):
            def says_so():
                return next((one for one in self.world.kymods if subject.said(one).get("state") == "running"), None)
            subject.kymod = eventually(says_so, 60) or subject.kymod
        self.checks.find(subject)
        if subject.checkpoint is None:
            self.checks.has_not_gone_back(subject, before)
            if place.exists():
                self.checks.delete(keeper, place)
        else:
            subject.restore_was_ended = True
            if not (answer := subject.kymod.kymo("verify", subject.checkpoint)):
                self.checks.violated(f"{subject.checkpoint} is not whole: {answer.out} {answer.err}")
        if subject.lost_connection():
            self.checks.lost_in_restore(subject, undisturbed)

    def _restore_kept(self, subject, kept, before):
        """Restores the copy that torture has kept, because the checkpoint was deleted."""
        answer = subject.kymod.kymo("restore", kept)
        if not answer or not subject.moves():
            if "(failure pid-taken;" not in answer.err:
                self.checks.violated(f"{kept}, a copy of what was deleted, cannot be restored: {answer.err}")
            self.checks.replace(subject)
        else:
            subject.checkpoint = None
            self.checks.has_not_gone_back(subject, before)
            if subject.lost_connection():
                self.checks.lost_in_restore(subject, undisturbed=False)
        shutil.rmtree(kept, ignore_errors=True)
