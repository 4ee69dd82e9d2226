"""What is done to kymod and its subjects. The seed chooses each action."""

import contextlib
import os
import signal
import subprocess
import time

import borrowed
from eventually import eventually
from world import connect

LONGEST = 180  # seconds; any request must be answered within this time, also on a busy machine


KINDS = ["nothing", "nothing", "kill kymod", "stop kymod", "stop criu", "kill criu", "interrupt client", "kill client",
         "cancel", "stall disk", "stall state", "fill state", "flood"]
# Also in the restore of a container.
OF_RUNTIMES = ["stop runtime", "stop runtime", "kill runtime", "kill runtime"]
# The programs that restore a container. If the runc of podman, or the runc or the shim of containerd or Docker is killed,
# these have it delete the files of the container's root (docs/faults.md), so theirs are only stopped.
PROGRAMS = ("runc", "podman", "conmon", "containerd-shim-runc-v2")
MORTAL = {"runc": ("runc",)}


class Disturbance:
    """A disturbance during a request. `daemon_died`: it killed kymod. `stopped`, `killed`: how many processes of CRIU or
    of a runtime it stopped and killed."""

    def __init__(self, world, subject, words):
        self.world = world
        of_runtime = OF_RUNTIMES if words[0] == "restore" and subject.is_container else []
        self.kind = world.random.choice(KINDS + of_runtime)
        self.after = world.random.uniform(0, 0.5) ** 2 * (0.4 if self.kind.endswith("criu") else 2)
        self.lasts = world.random.uniform(0.2, 3)
        self.mood = world.random.choice(["stalls", "is-silent"])
        self.daemon_died = False
        self.stopped = 0
        self.killed = 0

    def during(self, client, subject):
        """Waits for the time of the disturbance, and makes it. Times for CRIU and for a runtime count from its start."""
        looks = {"criu": self.world.criu_processes, "runtime": lambda: subject.programs(*PROGRAMS)}
        if look := looks.get(self.kind.split()[-1]):
            eventually(lambda: client.poll() is not None or look(), LONGEST)
        try:
            client.wait(timeout=self.after)
        except subprocess.TimeoutExpired:
            getattr(self, "_" + self.kind.replace(" ", "_"))(client, subject)

    def _nothing(self, client, subject):
        pass

    def _kill_kymod(self, client, subject):
        subject.kymod.stop(signal.SIGKILL)
        self.daemon_died = True

    def _stop_kymod(self, client, subject):
        subject.kymod.process.send_signal(signal.SIGSTOP)
        time.sleep(self.lasts)
        subject.kymod.process.send_signal(signal.SIGCONT)

    def _stop_criu(self, client, subject):
        stopped = self.world.criu_processes()
        self._stop(stopped)

    def _kill_criu(self, client, subject):
        """Kills CRIU at a time at which it executes nothing in the process. Otherwise the process would be killed,
        too."""
        until = time.monotonic() + 2
        while (running := self.world.criu_processes(callers=False)) and time.monotonic() < until:
            signal_all(running, signal.SIGSTOP)
            still = eventually(lambda: borrowed.stand_still(running), 0.2)
            if still and not borrowed.borrow_a_process(running):
                signal_all(running, signal.SIGKILL)
                self.killed = len(running)
                return
            signal_all(running, signal.SIGCONT)
            time.sleep(0.005)

    def _stop(self, pids, then=signal.SIGCONT):
        self.stopped = len(pids)
        signal_all(pids, signal.SIGSTOP)
        time.sleep(self.lasts)
        signal_all(pids, then)

    def _stop_runtime(self, client, subject):
        """Stops one of its programs, which goes on later, or is killed as it stands."""
        program = self.world.random.choice(PROGRAMS)
        kill = program == "runc" and program in MORTAL.get(subject.kind, ()) and self.world.random.random() < 0.4
        self._stop(subject.programs(program), signal.SIGKILL if kill else signal.SIGCONT)
        self.killed = self.stopped if kill else 0

    def _kill_runtime(self, client, subject):
        """Kills one of its programs while CRIU stands still, so that the restore has not succeeded."""
        running = self.world.criu_processes(callers=False)
        signal_all(running, signal.SIGSTOP)
        if running and eventually(lambda: borrowed.stand_still(running), 0.2) and self.world.criu_processes(callers=False):
            mortal = subject.programs(*MORTAL.get(subject.kind, ()))
            killed = self.world.random.sample(mortal, min(1, len(mortal)))
            signal_all(killed, signal.SIGKILL)
            self.killed = len(killed)
        signal_all(running, signal.SIGCONT)

    def _interrupt_client(self, client, subject):
        client.send_signal(signal.SIGINT)

    def _kill_client(self, client, subject):
        client.kill()

    def _cancel(self, client, subject):
        subject.kymod.kymo("cancel", subject.name)

    def _stall_disk(self, client, subject):
        self._stall("moody")

    def _stall_state(self, client, subject):
        self._stall("state")

    def _stall(self, disk):
        self.world.mood(disk, self.mood)
        time.sleep(self.lasts)
        self.world.mood(disk, "well")

    def _fill_state(self, client, subject):
        with self.world.full("state"):
            time.sleep(self.lasts / 3)

    def _flood(self, client, subject):
        port = subject.kymod.http_port()
        with contextlib.ExitStack() as open_clients, contextlib.suppress(OSError):
            for _ in range(300):
                open_clients.enter_context(connect(port))
            time.sleep(self.lasts / 3)


def signal_all(pids, what):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, what)


def request(world, subject, words):
    """Sends a request and disturbs it. Returns the disturbance, the exit code of the client (None if the client itself
    was disturbed and never ended), and its output."""
    disturbance = Disturbance(world, subject, words)
    client = subject.kymod.begin(*words)
    disturbance.during(client, subject)
    try:
        _, said = client.communicate(timeout=LONGEST)
    except subprocess.TimeoutExpired:
        client.kill()
        _, said = client.communicate()
        return disturbance, None, said.strip()
    return disturbance, client.returncode, said.strip()


def dump_words(world, subject):
    """A dump of the subject into a new place, with options chosen by the seed: the words, the place, and whether it
    runs on."""
    choose = world.random
    place = world.new_place(choose.choice(["plain", "plain", "moody", "small", "state"]), subject.kymod)
    words = ["dump", subject.runtime, subject.name, "--dir", place]
    leave = choose.random() < 0.25
    words += ["--leave-running"] if leave else []
    words += ["--deadline", f"{choose.randrange(20, 1500)}ms"] if choose.random() < 0.3 else []
    words += ["--tcp-established"] if subject.kind == "connection" else []
    if subject.runtime == "process":
        words += choose.choice([[], [], ["--stream"], ["--stream", "--compression", "zstd"], ["--sync"]])
    return words, place, leave
