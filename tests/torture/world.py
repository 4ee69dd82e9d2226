"""What is tortured: two kymods, disks that stall and become full, and the servers of containers.

All of it is in one folder, which World makes and removes. Everything here needs root.
"""

import contextlib
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import tempfile

import containerd
import docker
from echo import Echo
from eventually import eventually
from kymod import ANSWERS, Kymod
from subject import PODMAN, all_pids, words_of

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("KYMO_BUILD_DIR", ROOT / "build/release"))
# The servers that torture starts, and the variable that tells kymod where each one is.
SERVERS = {"containerd": (containerd, containerd.Containerd, "CONTAINERD_ADDRESS"),
           "docker": (docker, docker.Docker, "DOCKER_HOST")}


def criu(which):
    return subprocess.run([ROOT / "scripts/setup", which], stdout=subprocess.PIPE, text=True,
                          check=False).stdout.strip()


class World:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="kymo-torture-"))
        self.ends = contextlib.ExitStack()
        self.kymods = []
        self.servers = {}
        self.made = 0
        self.criu = criu("--criu")
        self.environment = {**os.environ, "PATH": f"{pathlib.Path(self.criu).parent}:{os.environ['PATH']}"}
        for name, size in (("state.inner", "256m"), ("small", "16m")):
            self._mount_memory(name, size)
        for name in ("plain", "moody.inner"):
            (self.folder / name).mkdir()
        for name in ("state", "moody"):
            self._mount_moody(name)

    # Disks.

    def _mount_memory(self, name, size):
        place = self.folder / name
        place.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "kymo-torture", place], check=True)
        self.ends.callback(subprocess.run, ["umount", "--lazy", place], check=False)

    def _mount_moody(self, name):
        inner, place = self.folder / f"{name}.inner", self.folder / name
        place.mkdir()
        self.mood(name, "well")
        disk = subprocess.Popen([BUILD / "tests/support/kymo-test-moody-fs", inner, place], stderr=subprocess.DEVNULL)
        self.ends.callback(disk.wait)
        self.ends.callback(disk.terminate)
        self.ends.callback(subprocess.run, ["umount", "--lazy", place], check=False)
        assert eventually(lambda: os.path.ismount(place), ANSWERS), "FUSE does not work here"

    def mood(self, disk, word):
        """Makes the disk `well`, `stalls`, `is-silent` or `fails` from now on (tests/support/moody_fs.cc)."""
        new = self.folder / f"{disk}.inner.mood.new"
        new.write_text(word)
        new.rename(self.folder / f"{disk}.inner.mood")

    @contextlib.contextmanager
    def full(self, disk):
        """While this is active, the disk is full."""
        filler = self.folder / disk / "filler"
        try:
            with open(filler, "wb", buffering=0) as file, contextlib.suppress(OSError):
                while True:
                    file.write(bytes(1 << 16))
            yield
        finally:
            filler.unlink()

    def new_place(self, disk, kymod=None):
        """A folder that does not exist, on this disk, or in the state directory of kymod."""
        self.made += 1
        folder = kymod.state / "checkpoints" if disk == "state" else self.folder / disk
        return folder / f"c{self.made}"

    def new_echo(self):
        echo = Echo()
        self.ends.callback(echo.close)
        return echo

    # The daemons.

    def begin_server(self, kind):
        """Starts a containerd or Docker before kymod is started. Returns the reason if there is none, or an empty
        string."""
        module, server, variable = SERVERS[kind]
        if why := module.why_not():
            return why
        try:
            self.servers[kind] = server(self.folder / kind, self.environment)
        except (OSError, subprocess.SubprocessError) as error:
            return str(error)
        self.environment[variable] = str(self.servers[kind].address)
        return ""

    def start(self):
        """Makes the kymods and starts them. Returns the one that does not start, or None."""
        words = ["--criu", self.criu, "--criu-fallback", criu("--criu-fallback"), "--criu-timeout", "30",
                 "--runc-root", self.folder / "runc", "--podman-flags", " ".join(PODMAN[1:])]
        self.kymods = [Kymod(BUILD, name, self.folder / state, words, self.environment)
                       for name, state in (("first", "state"), ("second", "second"))]
        return next((kymod for kymod in self.kymods if not kymod.start()), None)

    def other(self, kymod):
        return self.kymods[1 - self.kymods.index(kymod)]

    def criu_processes(self, callers=True):
        """The processes of CRIU that work in this folder: they have a file in it open. A loader may have started them.
        `callers`: also those of a runc or podman that was told which criu to start."""
        others = ("kymod", "kymo") if callers else ("kymod", "kymo", "runc", "podman", "conmon")
        found = []
        for pid in all_pids():
            words = words_of(pid)
            if pathlib.Path(words[0]).name in others or not any(pathlib.Path(word).name == "criu" for word in words):
                continue
            with contextlib.suppress(OSError):
                if any(str(self.folder) in os.readlink(fd) for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir()):
                    found.append(pid)
        return found

    def close(self):
        for disk in ("state", "moody"):
            self.mood(disk, "well")
        for end in ("runc", "podman", "servers"):
            with contextlib.suppress(OSError, subprocess.SubprocessError):
                getattr(self, f"_end_{end}")()
        for kymod in self.kymods:
            if kymod.process and not kymod.ended():
                kymod.stop(signal.SIGKILL)
        # The programs that count have this folder in their command line.
        subprocess.run(["pkill", "-KILL", "-f", str(self.folder) + "/p"], check=False)
        self.ends.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _end_runc(self):
        for container in (self.folder / "runc").iterdir():
            subprocess.run(["runc", "--root", self.folder / "runc", "delete", "--force", container.name], check=False)

    def _end_podman(self):
        names = [name for name in os.listdir(self.folder) if name.startswith("podman-")]
        if names:
            subprocess.run([*PODMAN, "rm", "--force", "--time", "0", *names], check=False,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def _end_servers(self):
        for server in self.servers.values():
            server.close()


def connect(port):
    """Connects as a client that sends only the first half of its request."""
    client = socket.create_connection(("127.0.0.1", port), timeout=5)
    client.sendall(b"GET /healthz HTTP/1.1\r\nHost:")
    return client
