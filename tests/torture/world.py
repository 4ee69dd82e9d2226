"""What is tortured: a kymod, disks that stall and become full, and subjects to checkpoint.

All of it is in one folder, which World makes and removes. Everything here needs root.
"""

import contextlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile

import containerd
import docker
from echo import Echo
from eventually import eventually

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("KYMO_BUILD_DIR", ROOT / "build/release"))
# Limits in seconds. On any machine, the action ends within this time or never.
ANSWERS = 180  # until a command of kymo has ended
STOPS = 120  # until kymod has stopped
COUNTS = 60  # until a subject that runs has counted further
PODMAN = ["podman", "--cgroup-manager=cgroupfs", "--runtime", "runc"]
# The servers that torture starts, and the variable that tells kymod where each one is.
SERVERS = {"containerd": (containerd, containerd.Containerd, "CONTAINERD_ADDRESS"),
           "docker": (docker, docker.Docker, "DOCKER_HOST")}
LOOP = "i=1000000; while true; do i=$((i+1)); echo $i 1<>%s; sleep 0.05; done"
# A program that counts in its memory and in a file, and has ARGV[1] MiB of other memory.
COUNTER = ("open my $f, '+<', $ARGV[0] or die; my $m = 'x' x ($ARGV[1] << 20); my $i = 1000000;"
           "while (1) { $i++; sysseek $f, 0, 0; syswrite $f, \"$i\\n\"; select undef, undef, undef, 0.03 }")

# A program that counts what an echo server on this port sends back over one connection. If the connection is lost, it
# makes another.
CONNECTED = ("use Socket; open my $f, '+<', $ARGV[0] or die; $SIG{PIPE} = 'IGNORE'; my $i = 1000000; my $s;"
             "while (1) { unless ($s) { socket $s, PF_INET, SOCK_STREAM, 0;"
             "connect $s, sockaddr_in($ARGV[1], INADDR_LOOPBACK) or die }"
             "my $j = $i + 1; my $got; $got = <$s> if syswrite $s, \"$j\\n\"; if (!$got) { close $s; undef $s; next }"
             "exit 1 if $got != $j; $i = $j; sysseek $f, 0, 0; syswrite $f, \"$i\\n\"; select undef, undef, undef, 0.03 }")


def criu(which):
    return subprocess.run([ROOT / "scripts/setup", which], stdout=subprocess.PIPE, text=True,
                          check=False).stdout.strip()


class Answer:
    """The result of a command of kymo."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err.strip()

    def __bool__(self):
        return self.code == 0


def answer_of(client, within):
    try:
        out, err = client.communicate(timeout=within)
        return Answer(client.returncode, out, err)
    except subprocess.TimeoutExpired:
        client.kill()
        client.communicate()
        return Answer(None, "", f"no answer in {within} s")


class World:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="kymo-torture-"))
        self.socket = self.folder / "kymod.sock"
        self.log = self.folder / "kymod.log"
        self.ends = contextlib.ExitStack()
        self.daemon = None
        self.servers = {}
        self.made = 0
        self.criu = criu("--criu")
        self.environment = {**os.environ, "KYMO_SOCKET": str(self.socket)}
        self.environment["PATH"] = f"{pathlib.Path(self.criu).parent}:{os.environ['PATH']}"
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

    def new_place(self, disk):
        self.made += 1
        folder = self.folder / disk / "checkpoints" if disk == "state" else self.folder / disk
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
        with open(self.log, "ab") as log:
            self.daemon = subprocess.Popen(
                [BUILD / "tools/kymod/kymod", "--socket", self.socket, "--state-dir", self.folder / "state",
                 "--http", "127.0.0.1:0", "--criu", self.criu, "--criu-fallback", criu("--criu-fallback"),
                 "--criu-timeout", "30", "--runc-root", self.folder / "runc", "--podman-flags", " ".join(PODMAN[1:])],
                stdout=log, stderr=log, env=self.environment, start_new_session=True)
        return bool(eventually(lambda: self.daemon.poll() is not None or self.kymo("ps"), ANSWERS)) and \
            self.daemon.poll() is None

    def stop(self, how=signal.SIGTERM):
        """Sends kymod this signal. Returns its exit code, or None if it does not end."""
        self.daemon.send_signal(how)
        try:
            return self.daemon.wait(timeout=STOPS)
        except subprocess.TimeoutExpired:
            return None

    def begin(self, *words):
        """Starts kymo with these words."""
        return subprocess.Popen([BUILD / "tools/kymo/kymo", *map(str, words)], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, env=self.environment)

    def kymo(self, *words, within=ANSWERS):
        return self.kymo_at_once([words], within)[0]

    def kymo_at_once(self, commands, within=ANSWERS):
        """The answers of these commands, which are all started before the first one is waited for."""
        return [answer_of(client, within) for client in [self.begin(*words) for words in commands]]

    def jobs(self):
        answer = self.kymo("ps", "--json", within=ANSWERS)
        if not answer:
            return None
        listed = json.loads(answer.out)
        return {job["name"]: job for job in listed}

    def idle(self):
        """Whether kymod answers and has ended all requests. A request can go on after its client was killed."""
        return bool(self.kymo("progress", "--json"))  # waits for the end of what runs

    def http_port(self):
        """The port that kymod has logged, or None if it has not logged one yet."""
        ports = re.findall(r"http 127\.0\.0\.1:(\d+)", self.log.read_text(errors="replace"))
        return int(ports[-1]) if ports else None

    def criu_processes(self, callers=True):
        """The processes of CRIU that work in this folder: they have a file in it open. A loader may have started them.
        `callers`: also those of a runc or podman that was told which criu to start."""
        others = ("kymod", "kymo") if callers else ("kymod", "kymo", "runc", "podman", "conmon")
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                words = (entry / "cmdline").read_text(errors="replace").split("\0") if entry.name.isdigit() else [""]
                if pathlib.Path(words[0]).name in others or not any(pathlib.Path(word).name == "criu" for word in words):
                    continue
                if any(str(self.folder) in os.readlink(fd) for fd in (entry / "fd").iterdir()):
                    found.append(int(entry.name))
        return found

    def close(self):
        for disk in ("state", "moody"):
            self.mood(disk, "well")
        for end in ("runc", "podman", "servers"):
            with contextlib.suppress(OSError, subprocess.SubprocessError):
                getattr(self, f"_end_{end}")()
        if self.daemon and self.daemon.poll() is None:
            self.daemon.kill()
            self.daemon.wait()
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


class Subject:
    """Something that counts, and that kymod checkpoints. `checkpoint` is the path of its checkpoint while it does not
    run."""

    def __init__(self, world, kind):
        world.made += 1
        self.world, self.kind = world, kind
        self.name = f"{kind}-{os.getpid()}-{world.made}"
        self.checkpoint = None
        self.frozen = False
        self.file = world.folder / f"p{world.made}.count"
        # The name that kymo uses for this kind.
        self.runtime = "process" if kind == "connection" else kind
        self.connections = 1  # the number of connections that it has made, if it has one
        if kind == "connection":
            self.file.write_text("0000000\n")
            self.echo = world.new_echo()
            words = ["process", "--name", self.name, "--", "perl", "-e", CONNECTED, self.file, self.echo.port]
        elif kind == "process":
            self.file.write_text("0000000\n")
            mib = world.random.choice([1, 1, 8, 40])
            words = ["process", "--name", self.name, "--", "perl", "-e", COUNTER, self.file, mib]
        elif kind == "runc":
            words = ["runc", "--bundle", self._bundle(), "--id", self.name]
        elif kind == "containerd":
            words = ["containerd", "--name", self.name, "--", containerd.IMAGE, "/bin/sh", "-c",
                     LOOP % f"/{self.file.name}"]
        elif kind == "docker":
            words = ["docker", "--name", self.name, "--", *docker.RUN, "/bin/sh", "-c", LOOP % "/count"]
        else:
            root = self._root(world.folder / self.name)
            words = ["podman", "--name", self.name, "--", "--network", "none", "--security-opt", "seccomp=unconfined",
                     "--ulimit", "nproc=1000:1000", "--ulimit", "nofile=1000:1000", "--rootfs", root,
                     "/bin/sh", "-c", LOOP % "/count"]
        self.started = world.kymo("run", *words)
        if kind == "containerd":
            self.file = eventually(lambda: world.servers[kind].file_of(self.file.name), 5) or self.file
        elif kind == "docker":
            self.file = eventually(lambda: world.servers[kind].file_of(self.name, "count"), 5) or self.file

    def _root(self, bundle):
        root = bundle / "rootfs"
        for name in ("bin", "proc", "dev", "sys", "tmp", "etc"):
            (root / name).mkdir(parents=True)
        shutil.copy(shutil.which("busybox"), root / "bin/busybox")
        for name in ("sh", "sleep"):
            (root / "bin" / name).symlink_to("busybox")
        self.file = root / "count"
        return root

    def _bundle(self):
        bundle = self.world.folder / self.name
        self._root(bundle)
        subprocess.run(["runc", "spec"], cwd=bundle, check=True)
        spec = json.loads((bundle / "config.json").read_text())
        spec["process"].update(terminal=False, args=["/bin/sh", "-c", LOOP % "/count"])
        del spec["process"]["rlimits"]
        spec["root"]["readonly"] = False
        spaces = spec["linux"]["namespaces"]
        spec["linux"]["namespaces"] = [space for space in spaces if space["type"] != "network"]
        (bundle / "config.json").write_text(json.dumps(spec))
        return bundle

    def count(self):
        try:
            return int(self.file.read_text())
        except (OSError, ValueError):
            return 0

    def moves(self, within=COUNTS):
        """Whether it counts. This is the only sign of life that does not come from kymod."""
        before = self.count()
        return bool(eventually(lambda: self.count() > before, within))

    def lost_connection(self):
        """Whether it has made another connection since the last call."""
        if self.kind != "connection" or self.echo.connections == self.connections:
            return False
        self.connections = self.echo.connections
        return True

    def restore_words(self):
        return ("restore", self.checkpoint)


def connect(port):
    """Connects as a client that sends only the first half of its request."""
    client = socket.create_connection(("127.0.0.1", port), timeout=5)
    client.sendall(b"GET /healthz HTTP/1.1\r\nHost:")
    return client
