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


class Disturbance:
    """A disturbance during a request. `daemon_died`: it killed kymod. `criu_stopped`, `criu_killed`: how many processes
    of CRIU it stopped and killed."""

    def __init__(self, world):
        self.world = world
        self.kind = world.random.choice(
            ["nothing", "nothing", "kill kymod", "stop kymod", "stop criu", "kill criu", "interrupt client",
             "kill client", "cancel", "stall disk", "stall state", "fill state", "flood"])
        self.after = world.random.uniform(0, 0.5) ** 2 * (0.4 if self.kind.endswith("criu") else 2)
        self.lasts = world.random.uniform(0.2, 3)
        self.mood = world.random.choice(["stalls", "is-silent"])
        self.daemon_died = False
        self.criu_stopped = 0
        self.criu_killed = 0

    def during(self, client, subject):
        """Waits for the time of the disturbance, and makes it. Times for CRIU count from the start of CRIU."""
        if self.kind.endswith("criu"):
            eventually(lambda: client.poll() is not None or self.world.criu_processes(), LONGEST)
        try:
            client.wait(timeout=self.after)
        except subprocess.TimeoutExpired:
            getattr(self, "_" + self.kind.replace(" ", "_"))(client, subject)

    def _nothing(self, client, subject):
        pass

    def _kill_kymod(self, client, subject):
        self.world.stop(signal.SIGKILL)
        self.daemon_died = True

    def _stop_kymod(self, client, subject):
        self.world.daemon.send_signal(signal.SIGSTOP)
        time.sleep(self.lasts)
        self.world.daemon.send_signal(signal.SIGCONT)

    def _stop_criu(self, client, subject):
        stopped = self.world.criu_processes()
        self.criu_stopped = len(stopped)
        for what in (signal.SIGSTOP, signal.SIGCONT):
            signal_all(stopped, what)
            time.sleep(self.lasts if what == signal.SIGSTOP else 0)

    def _kill_criu(self, client, subject):
        """Kills CRIU at a time at which it executes nothing in the process. Otherwise the process would be killed,
        too."""
        until = time.monotonic() + 2
        while (running := self.world.criu_processes(callers=False)) and time.monotonic() < until:
            signal_all(running, signal.SIGSTOP)
            still = eventually(lambda: borrowed.stand_still(running), 0.2)
            if still and not borrowed.borrow_a_process(running):
                signal_all(running, signal.SIGKILL)
                self.criu_killed = len(running)
                return
            signal_all(running, signal.SIGCONT)
            time.sleep(0.005)

    def _interrupt_client(self, client, subject):
        client.send_signal(signal.SIGINT)

    def _kill_client(self, client, subject):
        client.kill()

    def _cancel(self, client, subject):
        self.world.kymo("cancel", subject.name)

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
        port = self.world.http_port()
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
    disturbance = Disturbance(world)
    client = world.begin(*words)
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
    place = world.new_place(choose.choice(["plain", "plain", "moody", "small", "state"]))
    words = ["dump", subject.runtime, subject.name, "--dir", place]
    leave = choose.random() < 0.4
    words += ["--leave-running"] if leave else []
    words += ["--deadline", f"{choose.randrange(20, 1500)}ms"] if choose.random() < 0.3 else []
    words += ["--tcp-established"] if subject.kind == "connection" else []
    if subject.runtime == "process":
        words += choose.choice([[], [], ["--stream"], ["--stream", "--compression", "zstd"], ["--sync"]])
    return words, place, leave
