#!/usr/bin/python3
"""Makes ten dumps that fail, with CRIU, runc and podman alone and with kymo, and compares what they print: ten_dumps.md.

    tests/checkpoint/failures/ten_dumps.py            dumps plain processes with CRIU and kymo: kymo must name each cause and remedy
    tests/checkpoint/failures/ten_dumps.py --write    also dumps containers, and writes the page

A message names the cause, the place or a remedy if it matches the words that CASES has for it. KYMO and KYMOD name the
programs, KYMO_TEST_CRIU names CRIU."""

import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

from provoking import CRIU, PYTHON, run, until

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGE = ROOT / "tests/checkpoint/failures/ten_dumps.md"
STUBBORN = ROOT / "tests/e2e/stubborn.py"
PODMAN = ["--cgroup-manager=cgroupfs", "--runtime", "runc"]
NAME = "kymo-ten-dumps"
WITH_SERVER = """import socket, sys, time
peer = socket.socket(socket.AF_UNIX)
peer.connect(sys.argv[2] + "/server.sock")
print("ready", flush=True)
while True: time.sleep(0.05)
"""
COUNTING = "import time\nprint('ready', flush=True)\nwhile True: time.sleep(0.05)\n"

# Each case has a description of the failure, the program that causes it (an argument of stubborn.py, or Python code), and
# regular expressions for the cause, the place and a remedy.
CASES = [
    ("a server has an open connection", "tcp-established", r"TCP (connection|socket)", r"127\.0\.0\.1:\d+|descriptor \d", r"--tcp-established"),
    ("a client is connected to a unix socket of the machine", WITH_SERVER, r"unix|[Ee]xternal socket", r"server\.sock|descriptor \d",
     r"[Dd]ump the other process|close the connection"),
    ("a program has io_uring open", "io-uring-fd", r"io_uring", r"descriptor \d", r"without io_uring|UV_USE_IO_URING"),
    ("a program has a ring of io_uring mapped", "mapping-unsupported", r"io_uring", r"descriptor \d|[0-9a-f]{6,}-[0-9a-f]{6,}",
     r"without io_uring|UV_USE_IO_URING|[Uu]nmap"),
    ("a deleted file of 200 MiB is open", "ghost-big", r"deleted", r"/ghost\b", r"ghost-limit"),
    ("a program watches a file in /sys", "fsnotify", r"watch", r"descriptor \d|fd \d", r"[Tt]urn the watch off|force-irmap"),
    ("a pipe in packet mode holds data", "pipe-packet", r"packet", r"descriptor \d|fd \d", r"read the data|plain pipe"),
    ("a program has userfaultfd open", "fd-unsupported", r"userfaultfd", r"descriptor \d|file \d+ ", r"[Cc]lose the file|without the feature"),
    ("a server listens by MPTCP, as those of Go do", "socket-proto", r"MPTCP|multipath", r"descriptor \d|socket [0-9a-f]+",
     r"GODEBUG=multipathtcp=0|[Cc]lose the socket"),
    ("a debugger traces the program", COUNTING, r"traced|tracer|ptrace", r"TRACER", r"[Ee]nd the tracer"),
]
LABELS = ("cause", "place", "remedy")


def command(program, folder):
    return [PYTHON, "-c", program, "x", str(folder)] if "\n" in program else [PYTHON, str(STUBBORN), program, str(folder)]


class Server:
    """Listens on a unix socket in the folder, and keeps the connections open."""

    def __init__(self, folder):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(str(folder / "server.sock"))
        self.socket.listen()
        self.held = []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            self.held.append(self.socket.accept()[0])


class Kymod:
    def __init__(self, folder):
        self.folder = folder
        self.words = [os.environ["KYMO"], "--socket", str(folder / "socket")]
        self.process = subprocess.Popen([os.environ["KYMOD"], "--socket", folder / "socket", "--state-dir", folder / "state", "--http", "127.0.0.1:0",
                                         "--criu", CRIU, "--runc-root", folder / "runc", "--podman-flags=" + " ".join(PODMAN)],
                                        stdout=subprocess.DEVNULL, stderr=(folder / "kymod.log").open("w"))
        until(lambda: run(*self.words, "ps").returncode == 0, "kymod answers")

    def dump(self, kind, target, number):
        """What kymo prints if the dump fails, or None."""
        done = run(*self.words, "dump", kind, target, "--dir", self.folder / f"dump-{kind}-{number}")
        return None if done.returncode == 0 else done.stderr

    def end(self):
        self.process.terminate()
        self.process.wait()


class Target:
    """One of the ten cases: a plain process, or one in a container of runc or podman."""

    def __init__(self, kind, program, folder):
        self.kind, self.folder, self.pid, self.tracer = kind, folder, 0, None
        self.out = folder / f"{kind}.out"
        getattr(self, "start_" + kind)(program)
        if program == COUNTING:
            self.trace()

    def start_process(self, program):
        with self.out.open("w") as out:
            child = subprocess.Popen(command(program, self.folder), start_new_session=True, stdin=subprocess.DEVNULL, stdout=out,
                                     stderr=subprocess.DEVNULL)
        until(lambda: self.out.read_text().count("\n") > 0 or child.poll() is not None, "the process is ready")
        self.pid, self.child = child.pid, child

    def make_root(self):
        """Makes a root file system with the Python of this machine."""
        root = self.folder / f"root-{self.kind}"
        for name in ("proc", "dev", "sys", "tmp", "etc", "usr", "share"):
            (root / name).mkdir(parents=True)
        for name in ("bin", "lib", "lib64"):
            (root / name).symlink_to(f"usr/{name}")
        shutil.copy(STUBBORN, self.folder / "stubborn.py")
        return root

    def in_container(self, program):
        """The command of a container. The program prints that it is ready to a file in the folder, which is mounted at /share,
        because its standard output may be a pipe."""
        words = command(program, "/share")
        words = ["/share/stubborn.py" if word == str(STUBBORN) else word for word in words]
        return ["/usr/bin/sh", "-c", 'exec "$@" >"$0" 2>&1 </dev/null', f"/share/{self.out.name}", *words]

    def start_runc(self, program):
        bundle = self.folder / "bundle"
        bundle.mkdir()
        root = self.make_root()
        subprocess.run(["runc", "spec"], cwd=bundle, check=True)
        spec = json.loads((bundle / "config.json").read_text())
        spec["process"].update(terminal=False, args=self.in_container(program))
        spec["process"].pop("rlimits", None)
        spec["root"] = {"path": str(root), "readonly": False}
        spec["linux"]["namespaces"] = [each for each in spec["linux"]["namespaces"] if each["type"] != "network"]
        spec["mounts"] += [{"destination": "/usr", "source": "/usr", "type": "bind", "options": ["rbind", "ro"]},
                           {"destination": "/share", "source": str(self.folder), "type": "bind", "options": ["rbind", "rw"]}]
        (bundle / "config.json").write_text(json.dumps(spec))
        self.runc = ["runc", "--root", self.folder.parent / "runc"]
        subprocess.run([*self.runc, "run", "--detach", "--bundle", bundle, NAME], check=True, stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.wait_in_container(run(*self.runc, "state", NAME))

    def start_podman(self, program):
        self.podman = ["podman", *PODMAN]
        run(*self.podman, "run", "--detach", "--replace", "--name", NAME, "--network", "none", "--security-opt", "seccomp=unconfined",
            "--ulimit", "nproc=1000:1000", "--ulimit", "nofile=1000:1000", "--volume", "/usr:/usr:ro", "--volume", f"{self.folder}:/share",
            "--rootfs", self.make_root(), *self.in_container(program))
        self.wait_in_container(run(*self.podman, "inspect", NAME))

    def wait_in_container(self, state):
        until(lambda: self.out.exists() and self.out.read_text().count("\n") > 0, f"{self.kind} is ready: {state.stdout} {state.stderr}")
        said = json.loads(state.stdout)
        self.pid = said["pid"] if self.kind == "runc" else said[0]["State"]["Pid"]

    def trace(self):
        code = (f"import ctypes, time\nassert ctypes.CDLL(None).ptrace(0x4206, {self.pid}, None, None) == 0\n"
                "print('ready', flush=True)\ntime.sleep(600)")
        self.tracer = subprocess.Popen([PYTHON, "-c", code], stdout=subprocess.PIPE)
        self.tracer.stdout.readline()

    def said_by_others(self):
        """What CRIU, runc or podman prints without kymo, and the number of lines in the log that it leaves."""
        images = self.folder / f"images-{self.kind}"
        images.mkdir()
        if self.kind == "process":
            done = run(CRIU, "dump", "-t", self.pid, "-D", images)
            run(CRIU, "dump", "-t", self.pid, "-D", images, "-v4", "-o", "dump.log")
            log = images / "dump.log"
        elif self.kind == "runc":
            done = run(*self.runc, "checkpoint", "--image-path", images, "--work-path", images, NAME,
                       env={**os.environ, "PATH": f"{pathlib.Path(CRIU).parent}:{os.environ['PATH']}"})
            log = images / "dump.log"
        else:
            done = run(*self.podman, "container", "checkpoint", NAME, env={**os.environ, "PATH": f"{pathlib.Path(CRIU).parent}:{os.environ['PATH']}"})
            named = re.search(r"/\S+/dump\.log", done.stderr)
            log = pathlib.Path(named.group()) if named else images / "none"
        text = log.read_text(errors="replace") if log.exists() else ""
        return (None if done.returncode == 0 else done.stderr), text.count("\n")

    def end(self):
        if self.tracer:
            self.tracer.kill()
            self.tracer.wait()
        if self.kind == "process":
            self.child.kill()
            self.child.wait()
        elif self.kind == "runc":
            run(*self.runc, "delete", "--force", NAME)
        else:
            run(*self.podman, "rm", "--force", "--time", "0", NAME)


def judged(text, case, tracer):
    """Whether the text names the cause, the place and a remedy."""
    if text is None:
        return None
    _, _, *words = case
    return [re.search(pattern.replace("TRACER", rf"\b{tracer}\b"), text) is not None for pattern in words]


def one_line(text, folder):
    lines = [re.sub(r"^(WARN|ERRO)\[0000\] ", "", line.strip()) for line in (text or "").splitlines()]
    text = " / ".join(line for line in lines if line)
    text = re.sub(r"/\S*(/userdata|/images-\w+)", r"...\1", text).replace(str(folder), "...").replace(str(folder.parent), "...")
    text = re.sub(r"\b[0-9a-f]{64}\b", "ID", text).replace("|", "\\|").replace("`", "'").replace("<", "&lt;")
    return text


def look_at(kinds):
    """The rows of the table: each case, and for each kind what the other program and kymo print, and what these texts name."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="kymo-ten-") as name:
        base = pathlib.Path(name)
        base.chmod(0o755)
        kymod = Kymod(base)
        try:
            for number, case in enumerate(CASES):
                row = {}
                for kind in kinds:
                    folder = base / f"{number}-{kind}"
                    folder.mkdir()
                    server = Server(folder) if case[1] == WITH_SERVER else None
                    target = Target(kind, case[1], folder)
                    try:
                        tracer = target.tracer.pid if target.tracer else 0
                        others, lines = target.said_by_others()
                        ours = kymod.dump(kind, target.pid if kind == "process" else NAME, number)
                        row[kind] = {"others": one_line(others, folder), "lines": lines, "ours": one_line(ours, folder),
                                     "judged others": judged(others, case, tracer), "judged ours": judged(ours, case, tracer)}
                    finally:
                        target.end()
                        if server:
                            server.socket.close()
                rows.append((case[0], row))
        finally:
            kymod.end()
    return rows


def alike(texts):
    """The texts without what differs from run to run, each only once."""
    seen = {re.sub(r"\d{4}-\d\d-\d\dT[\d:]+Z", "TIME", text) for text in texts}
    return sorted(seen)


def told(judgement):
    if judgement is None:
        return "did not fail"
    return ", ".join(label for label, is_said in zip(LABELS, judgement) if is_said) or "nothing"


def page(rows):
    kinds = {"process": "CRIU", "runc": "runc", "podman": "podman"}
    versions = [run(CRIU, "--version").stdout.splitlines()[0].replace("Version:", "CRIU"), run("runc", "--version").stdout.splitlines()[0],
                run("podman", "--version").stdout.strip()]
    text = f"""# Ten dumps that fail

Read this page if you want to know what you see when a dump fails, with and without Kymograph. Ten programs that cannot
be dumped were dumped as plain processes by `criu dump`, as containers by `runc checkpoint` and by `podman container
checkpoint`, and each of them by `kymo dump`. `tests/checkpoint/failures/ten_dumps.py --write` repeats this and writes the page.

The table shows what the text on the terminal names: the **cause**, the **place** (a path, descriptor, connection,
mapping, process that traces), and a **remedy**. The script judges this by words that it lists for each case. Made by
{", ".join(versions)}.

| what happened | `criu` alone | `runc` alone | `podman` alone | `kymo dump process` | `kymo dump runc` | `kymo dump podman` |
| --- | --- | --- | --- | --- | --- | --- |
"""
    for name, row in rows:
        text += f"| {name} | " + " | ".join([told(row[kind]["judged others"]) for kind in kinds] + [told(row[kind]["judged ours"]) for kind in kinds]) + " |\n"
    count = lambda who, which: [sum(bool(row[kind][who] and row[kind][who][which]) for _, row in rows) for kind in kinds]  # noqa: E731
    failed = lambda who: [sum(row[kind][who] is not None for _, row in rows) for kind in kinds]  # noqa: E731
    for which, label in enumerate(LABELS):
        cells = [f"{said} of {all_}" for who in ("judged others", "judged ours") for said, all_ in zip(count(who, which), failed(who))]
        text += f"| **names the {label}** | " + " | ".join(cells) + " |\n"
    lengths = sorted(row["process"]["lines"] for _, row in rows)
    text += f"""
If the text does not say it, one reads CRIU's log. With `-v4`, as runc and podman ask for it, it has {lengths[0]} to
{lengths[-1]} lines here. `kymo explain LOG` reads it, too ([errors.md](../../docs/errors.md)).

## What they say

Folders of the test are shortened to `...`. runc and podman said the same each time:

| by | text |
| --- | --- |
"""
    for kind in ("runc", "podman"):
        for said in alike(row[kind]["others"] for _, row in rows):
            text += f"| {kind} alone | {said} |\n"
    for name, row in rows:
        text += f"\n### {name[0].upper()}{name[1:]}\n\n| by | text |\n| --- | --- |\n"
        text += f"| `criu dump` | {row['process']['others']} |\n| `kymo dump process` | {row['process']['ours']} |\n"
    return text


class TenDumpsTest(unittest.TestCase):
    def test_kymo_names_each_cause_and_a_remedy(self):
        if os.geteuid() != 0 or run(CRIU, "check").returncode != 0:
            self.skipTest("needs root and a CRIU that works")
        for name, row in look_at(["process"]):
            with self.subTest(name):
                self.assertIsNotNone(row["process"]["judged others"], "CRIU did not fail")
                self.assertEqual(row["process"]["judged ours"], [True, True, True], row["process"]["ours"])


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(page(look_at(["process", "runc", "podman"])))
    else:
        unittest.main()
