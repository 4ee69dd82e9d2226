"""A kymod with a state directory, a socket and a log of its own."""

import json
import os
import re
import signal
import subprocess

from eventually import eventually

# Limits in seconds. On any machine, the action ends within this time or never.
ANSWERS = 180  # until a command of kymo has ended
STOPS = 120  # until kymod has stopped


class Answer:
    """The result of a command of kymo."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err.strip()

    def __bool__(self):
        return self.code == 0


def answer_of(client, within=ANSWERS):
    try:
        out, err = client.communicate(timeout=within)
        return Answer(client.returncode, out, err)
    except subprocess.TimeoutExpired:
        client.kill()
        client.communicate()
        return Answer(None, "", f"no answer in {within} s")


class Kymod:
    """`build`: the folder of the programs. `words`: its other options. `environment`: of it and its clients. `state`:
    its state directory, which need not exist."""

    def __init__(self, build, name, state, words, environment):
        self.build, self.name, self.state, self.words = build, name, state, words
        self.socket = state.parent / f"{name}.sock"
        self.log = state.parent / f"{name}.log"
        self.environment = {**environment, "KYMO_SOCKET": str(self.socket)}
        self.process = None

    def start(self, *more):
        """`more`: options for this time only."""
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [self.build / "tools/kymod/kymod", "--socket", self.socket, "--state-dir", self.state,
                 "--http", "127.0.0.1:0", *self.words, *more],
                stdout=log, stderr=log, env=self.environment, start_new_session=True)
        return bool(eventually(lambda: self.ended() or self.kymo("ps"), ANSWERS)) and not self.ended()

    def ended(self):
        return self.process.poll() is not None

    def stop(self, how=signal.SIGTERM):
        """Sends kymod this signal. Returns its exit code, or None if it does not end."""
        self.process.send_signal(how)
        try:
            return self.process.wait(timeout=STOPS)
        except subprocess.TimeoutExpired:
            return None

    def begin(self, *words):
        """Starts kymo with these words."""
        return subprocess.Popen([self.build / "tools/kymo/kymo", *map(str, words)], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, env=self.environment)

    def kymo(self, *words):
        return answer_of(self.begin(*words))

    def jobs(self):
        answer = self.kymo("ps", "--json")
        return json.loads(answer.out) if answer else []

    def idle(self):
        """Whether kymod answers and has ended all requests. A request can go on after its client was killed."""
        return bool(self.kymo("progress", "--json"))  # waits for the end of what runs

    def restores(self):
        """Whether it has noted that it restores something, which it does before it calls CRIU or a runtime."""
        try:
            return any(os.scandir(self.state / "restoring"))
        except OSError:
            return False

    def http_port(self):
        """The port that kymod has logged, or None if it has not logged one yet."""
        ports = re.findall(r"http 127\.0\.0\.1:(\d+)", self.log_text())
        return int(ports[-1]) if ports else None

    def log_text(self):
        return self.log.read_text(errors="replace")
