"""Something that counts, and that kymod checkpoints."""

import json
import os
import pathlib
import shutil
import subprocess

import containerd
import docker
from eventually import eventually

COUNTS = 60  # seconds until a subject that runs has counted further, on any machine
PODMAN = ["podman", "--cgroup-manager=cgroupfs", "--runtime", "runc"]
LOOP = ": %s; i=1000000; while true; do i=$((i+1)); echo $i 1<>%s; sleep 0.05; done"
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


def words_of(pid):
    """The command line of a process. Empty if there is none."""
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")
    except OSError:
        return [""]


def all_pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


class Subject:
    """`checkpoint` is the path of its checkpoint while it does not run. `kymod` is the one that it is a job of, and
    `keeper` the one that made the checkpoint, and lists it."""

    def __init__(self, world, kind):
        world.made += 1
        self.world, self.kind = world, kind
        self.name = f"{kind}-{os.getpid()}-{world.made}"
        self.kymod = self.keeper = world.kymods[0]
        self.checkpoint = None
        self.file = world.folder / f"p{world.made}.count"
        # The name that kymo uses for this kind.
        self.runtime = "process" if kind == "connection" else kind
        self.is_container = self.runtime != "process"
        self.restore_was_ended = False  # since its last dump, so its connection may be closed
        self.connections = 1  # the number of connections that it has made, if it has one
        self.started = self.kymod.kymo("run", *getattr(self, f"_{kind}")())
        if kind == "containerd":
            self.file = eventually(lambda: world.servers[kind].file_of(self.file.name), 5) or self.file
        elif kind == "docker":
            self.file = eventually(lambda: world.servers[kind].file_of(self.name, "count"), 5) or self.file
        # The last part of what kymod calls the container, which runc, conmon and the shims are told.
        self.id = self.said(self.kymod).get("container", "").rsplit("/", 1)[-1] or self.name

    # The words of `kymo run`.

    def _process(self):
        self.file.write_text("0000000\n")
        mib = self.world.random.choice([1, 1, 8, 40])
        return ["process", "--name", self.name, "--", "perl", "-e", COUNTER, self.file, mib]

    def _connection(self):
        self.file.write_text("0000000\n")
        self.echo = self.world.new_echo()
        return ["process", "--name", self.name, "--", "perl", "-e", CONNECTED, self.file, self.echo.port]

    def _runc(self):
        return ["runc", "--bundle", self._bundle(), "--id", self.name]

    def _podman(self):
        root = self._root(self.world.folder / self.name)
        return ["podman", "--name", self.name, "--", "--network", "none", "--security-opt", "seccomp=unconfined",
                "--ulimit", "nproc=1000:1000", "--ulimit", "nofile=1000:1000", "--rootfs", root,
                "/bin/sh", "-c", LOOP % (self.name, "/count")]

    def _containerd(self):
        return ["containerd", "--name", self.name, "--", containerd.IMAGE, "/bin/sh", "-c",
                LOOP % (self.name, f"/{self.file.name}")]

    def _docker(self):
        return ["docker", "--name", self.name, "--", *docker.RUN, "/bin/sh", "-c", LOOP % (self.name, "/count")]

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
        spec["process"].update(terminal=False, args=["/bin/sh", "-c", LOOP % (self.name, "/count")])
        del spec["process"]["rlimits"]
        spec["root"]["readonly"] = False
        spaces = spec["linux"]["namespaces"]
        spec["linux"]["namespaces"] = [space for space in spaces if space["type"] != "network"]
        (bundle / "config.json").write_text(json.dumps(spec))
        return bundle

    # Signs of life that do not come from kymod.

    def count(self):
        try:
            return int(self.file.read_text())
        except (OSError, ValueError):
            return 0

    def moves(self, within=COUNTS):
        """Whether it counts."""
        before = self.count()
        return bool(eventually(lambda: self.count() > before, within))

    def lost_connection(self):
        """Whether it has made another connection since the last call."""
        if self.kind != "connection" or self.echo.connections == self.connections:
            return False
        self.connections = self.echo.connections
        return True

    def copies(self):
        """Its processes that count. A child that the shell has just forked looks the same, for a moment."""
        own = self.name if self.is_container else str(self.file)
        programs = ("sh", "perl")
        return [pid for pid in all_pids() if pathlib.Path((words := words_of(pid))[0]).name in programs and
                any(own in word for word in words)]

    def has_its_root(self):
        """Whether the files of its root are there, if it is a container that runs."""
        return not self.is_container or any(os.path.exists(f"/proc/{pid}/root/bin/busybox") for pid in self.copies())

    def programs(self, *names):
        """The processes of these programs that are told the id of this container."""
        return [pid for pid in all_pids() if pathlib.Path((words := words_of(pid))[0]).name in names and
                any(self.id in word for word in words)]

    def restorers(self):
        """The processes that restore it now."""
        return self.world.criu_processes() + [pid for pid in self.programs("runc", "podman")
                                              if "restore" in words_of(pid)]

    # What kymod says.

    def said(self, kymod):
        """The job that it is for this kymod. Empty if it is none. A kymod that did not start a container names it after
        its program."""
        for job in kymod.jobs():
            if job["name"] == self.name or self.is_container and \
                    job["container"].rsplit("/", 1)[-1] in (self.name, getattr(self, "id", self.name)):
                return job
        return {}

    # What somebody else does with the container.

    def start_elsewhere(self):
        """Starts the program that makes the container run, from its beginning. Without kymod."""
        return self._elsewhere({"runc": ["run", "--detach", "--bundle", self.world.folder / self.name],
                                "containerd": ["tasks", "start", "--detach", "--null-io"]}.get(self.kind, ["start"]))

    def end_elsewhere(self):
        """Ends the container that runs, so that it can be restored."""
        for words in {"runc": [["delete", "--force"]], "containerd": [["tasks", "delete", "--force"]],
                      "podman": [["stop", "--time", "0"]], "docker": [["stop", "--time", "0"]]}[self.kind]:
            self._elsewhere(words).communicate(timeout=COUNTS)

    def _elsewhere(self, words):
        program = {"runc": ["runc", "--root", self.world.folder / "runc"], "podman": PODMAN,
                   "containerd": ["ctr", "--address", self.world.environment.get("CONTAINERD_ADDRESS")],
                   "docker": ["docker", "--host", self.world.environment.get("DOCKER_HOST")]}[self.kind]
        # runc gives its output to the container, so a pipe would never be closed.
        return subprocess.Popen([*program, *words, self.name], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL)
