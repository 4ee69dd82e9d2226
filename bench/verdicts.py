#!/usr/bin/python3
"""Whether `kymo explain` names the right cause, and whether its advice helps as much as it promises: prepared causes, for
dumps and restores of processes and of containers.

    bench/verdicts.py --pairs 5 --criu "$(scripts/setup --criu)"      # as root
    bench/verdicts.py --only cpu-busy,vfork --ways process,runc --directions dump
    bench/verdicts.py --list

A cell is a cause, a way (process: streamed; direct: --no-stream; runc, podman, containerd) and a direction. In each pair, one request
is slow by the cause, and one has the cure: what the advice says, or else the same without the cause. The order is random,
and a first pair is left out. Prints a table for docs/phases.md, and how many verdicts were right, silent or wrong:

    right   the first cause is the prepared one
    silent  no headline: "nothing stands out"
    wrong   a headline that names another cause

A verdict counts as right, too, if the machine did not make the cause (the cure saves less than a fifth) and nothing is said, or if
the hypervisor took a tenth of the CPU time, as this program itself reads in /proc/stat, and the headline says so. A promise is
the time of the request minus the middle of the estimate, and is kept if the cure saves between half and twice of it.

Ends with 1 if less than 95 of 100 verdicts are right, or one is wrong, or less than 90 of 100 promises are kept, or a request
failed.

Cannot be made here without harm: steal, swap, and page cache that the host of a virtual machine must supply first.
"""
import collections
import contextlib
import dataclasses
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import time

import common
from verdict_rows import judge, summary_of

SHAPE = pathlib.Path(__file__).resolve().parent.parent / "tests/e2e/shape.py"
PODMAN = ["--cgroup-manager=cgroupfs", "--runtime", "runc"]
CGROUPS = pathlib.Path("/sys/fs/cgroup")
AUTOGROUPS = pathlib.Path("/proc/sys/kernel/sched_autogroup_enabled")
NO_TMPFS = ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /run && exec "$@"']
WAYS = ("process", "direct", "runc", "podman", "containerd")
DIRECTIONS = ("dump", "restore")
PLAIN = ("process", "direct")
CONTAINERS = ("runc", "podman", "containerd")


@dataclasses.dataclass
class Setting:
    """How one of the two requests of a pair is made."""
    program: list
    disk: str = "fast"  # for the images
    options: list = dataclasses.field(default_factory=list)  # of kymo dump
    before: list = dataclasses.field(default_factory=list)  # a command that runs the daemons
    groups: dict = dataclasses.field(default_factory=dict)  # cgroups of the daemons: {"cpu": {"cpu.cfs_quota_us": "5000"}}
    target_groups: dict = dataclasses.field(default_factory=dict)  # and of the target
    weight: int = 0  # of the container; 0: as its runtime sets it
    loops: int = 0  # programs that keep the CPUs busy
    autogroup: int = 0  # the nice value of the session of the daemons


@dataclasses.dataclass
class Cause:
    name: str
    right: tuple  # the rules that name it. Empty: nothing may be named
    slow: Setting
    cure: Setting
    ways: tuple = WAYS
    directions: tuple = DIRECTIONS
    cold: bool = False  # the images are read from the disk


def churn(mib):
    return ["churn", "--mib", str(mib)]


def causes(folder):
    loops = 6 * os.cpu_count()
    own = ["setsid"]
    autogroups = AUTOGROUPS.exists() and AUTOGROUPS.read_text().startswith("1")
    higher = {"before": own, "autogroup": -20} if autogroups else {"before": ["nice", "-n", "-20"]}
    quota, wide_quota = ({"cpu": {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": str(us)}} for us in (5000, 20000))
    least = {"cpu": {"cpu.shares": "256"}}
    small = {"memory": {"memory.limit_in_bytes": str(96 << 20)}}
    strong = ["--compression", "zstd", "--compression-level", "15"]
    disk = ("disk-wait", "dirty-throttled")
    of_quota = ("cpu-quota",)
    # What CRIU does for the smallest dump or restore: the log has the time of each.
    usual = ("", "kernel-probed", "mounts", "network-lock", "slow-freeze")
    one = Setting
    starved = one(churn(128), before=own, loops=loops)
    return [
        Cause("nothing", usual, one(churn(16)), one(churn(16))),
        Cause("disk-throttled", disk, one(churn(64), "throttled"), one(churn(64), "memory"), cold=True),
        Cause("disk-fuse", disk, one(churn(64), "fuse"), one(churn(64), "memory"), cold=True),
        Cause("disk-sync", disk, one(churn(64), "sync"), one(churn(64), "memory"), directions=("dump",)),
        Cause("dirty-pages", ("dirty-throttled", "disk-wait"), one(churn(64), "bounded"), one(churn(64), "memory"), directions=("dump",)),
        Cause("cpu-busy", ("cpu-wait",), starved, one(churn(128), loops=loops, **higher), directions=("dump",)),
        Cause("cpu-busy", ("cpu-wait",), starved, one(churn(128), loops=loops, **higher), ways=PLAIN, directions=("restore",)),
        Cause("cpu-busy", ("cpu-wait",), starved, one(churn(128), before=own, loops=loops, weight=1 << 18), ways=CONTAINERS,
              directions=("restore",)),
        Cause("low-priority", ("cpu-wait",), one(churn(128), groups=least, loops=2 * os.cpu_count()), one(churn(128), loops=0)),
        Cause("cpu-quota", of_quota, one(churn(128), groups=quota), one(churn(128)), ways=(*PLAIN, "runc")),
        # With less, podman and containerd themselves need more than 10 s.
        Cause("cpu-quota-of-engine", of_quota, one(churn(128), groups=wide_quota), one(churn(128)), ways=("podman", "containerd")),
        Cause("quota-of-target", of_quota, one(churn(128), target_groups=quota), one(churn(128)), directions=("dump",)),
        Cause("memory-limit", ("memory-pressure", "memory-limit", *disk), one(churn(256), "throttled", groups=small),
              one(churn(256), "memory"), directions=("dump",)),
        Cause("mappings", ("many-mappings",), one(["shape", "mappings", "15000", "1"]),
              one(["shape", "mappings", "15000", "1"], options=["--log-level", "1"]), ways=PLAIN, directions=("dump",)),
        Cause("mappings-of-container", ("many-mappings",), one(["shape", "mappings", "15000", "1"]), one(churn(64)), ways=CONTAINERS,
              directions=("dump",)),
        Cause("scattered", ("scattered-memory", "copying"), one(["shape", "scattered", "128", "1"]), one(["shape", "scattered", "128", "0"]),
              directions=("dump",)),
        Cause("descriptors", ("many-files",), one(["shape", "files", "3600"]), one(["shape", "files", "10"]),
              ways=("process", "direct", "runc", "podman"), directions=("dump",)),
        Cause("processes", ("many-processes", "many-files"), one(["tasks", "children", "100"]), one(["tasks", "children", "1"])),
        Cause("uninterruptible", ("slow-freeze",), one(["shape", "writes", "throttled"]), one(churn(4)), directions=("dump",)),
        # A freezer stops the child, too, and then the dump fails: its parent waits for it.
        Cause("vfork", ("slow-freeze",), one(["tasks", "sleeper"]), one(churn(4)), ways=PLAIN, directions=("dump",)),
        Cause("compression", ("compression",), one(churn(8), options=strong), one(churn(8), options=["--compression", "none"]),
              ways=("process",), directions=("dump",)),
        Cause("kernel-probed", ("kernel-probed",), one(churn(1), before=[*NO_TMPFS, folder / "run"]), one(churn(1)), ways=PLAIN,
              directions=("restore",)),
        Cause("page-faults", ("page-faults",), one(churn(256)), one(churn(16)), directions=("restore",)),
    ]


class World:
    """Disks, as far as they can be made here."""

    def __init__(self, folder):
        self.folder, self.stack = folder, contextlib.ExitStack()
        self.disks = {"fast": folder / "fast", "memory": pathlib.Path("/dev/shm") / folder.name}
        for path in self.disks.values():
            path.mkdir()
        self.stack.callback(shutil.rmtree, self.disks["memory"], ignore_errors=True)
        under, fuse = folder / "under", folder / "fuse"
        under.mkdir()
        fuse.mkdir()
        if subprocess.run(["bindfs", "--write-rate=20M", "--read-rate=20M", under, fuse], capture_output=True).returncode == 0:
            self.stack.callback(self.unmount, fuse)
            self.disks["fuse"] = fuse
            # blkio.throttle would not do: a runtime moves CRIU into the cgroup of the container that it restores.
            self.add_disk("throttled", "loop", on=fuse)
        self.add_disk("sync", "loop,sync")
        self.add_disk("bounded", "loop", self.bound)

    def add_disk(self, name, options, make=None, on=None):
        image, path = (self.folder / "under" if on else self.folder) / f"{name}.img", self.folder / name
        path.mkdir()
        with image.open("wb") as file:
            file.truncate(3 << 30)
        for command in (["mkfs.ext4", "-q", "-F", image], ["mount", "-o", options, (on or self.folder) / image.name, path]):
            if subprocess.run(command, capture_output=True).returncode:
                return
        self.stack.callback(self.unmount, path)
        if make is None or make(path):
            self.disks[name] = path

    @staticmethod
    def unmount(path):
        common.wait_until(lambda: subprocess.run(["umount", path], capture_output=True).returncode == 0, "a disk stays in use")

    @staticmethod
    def device_of(path):
        device = path.stat().st_dev
        return f"{os.major(device)}:{os.minor(device)}"

    def bound(self, path):
        """At most 1 MiB may wait to be written."""
        settings = pathlib.Path(f"/sys/class/bdi/{self.device_of(path)}")
        try:
            (settings / "strict_limit").write_text("1")
            (settings / "max_bytes").write_text(str(1 << 20))
        except OSError:
            return False
        return True

    def can(self, setting):
        groups = {**setting.groups, **setting.target_groups}
        return setting.disk in self.disks and all((CGROUPS / name / "cgroup.procs").exists() for name in groups)

    def close(self):
        self.stack.close()


@contextlib.contextmanager
def cgroups(settings, name):
    """Yields the paths of new cgroups with these settings."""
    made = []
    for controller, values in settings.items():
        path = CGROUPS / controller / name
        path.mkdir(exist_ok=True)
        if (path / "cpu.rt_runtime_us").exists():  # kymod has a real-time thread
            values = {"cpu.rt_runtime_us": "10000", **values}
        for file, value in values.items():
            (path / file).write_text(value)
        made.append(path)
    try:
        yield made
    finally:
        for path in made:
            common.wait_until(lambda at=path: subprocess.run(["rmdir", at], capture_output=True).returncode == 0, "a cgroup stays in use")


def weights_above(pid):
    """The files with the weights of the cgroups above that of a process: a weight counts only beside those of the same parent."""
    text = pathlib.Path(f"/proc/{pid}/cgroup").read_text()
    paths = re.findall(r"^\d+:(?:[a-z,]*,)?cpu(?:,[a-z,]*)?:/(.*)$", text, re.MULTILINE)
    root = CGROUPS / "cpu"
    return [parent / "cpu.shares" for path in paths for parent in (root / path).parents if root in parent.parents]


@contextlib.contextmanager
def holding(files, value):
    """The files have this value meanwhile."""
    before = [(file, file.read_text()) for file in files]
    for file in files:
        file.write_text(str(value))
    try:
        yield
    finally:
        for file, text in before:
            file.write_text(text)


@contextlib.contextmanager
def busy(count):
    loops = [subprocess.Popen(["sh", "-c", "while :; do :; done"], start_new_session=True) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


class Failed(Exception):
    """A program did not do what a cell needs."""


def run(*words, check=True, **more):
    more = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, **more}
    done = subprocess.run(words, stdin=subprocess.DEVNULL, text=True, **more)
    if check and done.returncode != 0:
        raise Failed(f"{' '.join(map(str, words))}: {done.stderr}")
    return done


class Containerd:
    """A containerd of its own, with an image that has links into /usr."""

    def __init__(self, folder, before, criu):
        self.address = folder / "containerd.sock"
        config = folder / "config.toml"
        config.write_text(f"version = 2\nroot = '{folder}/root'\nstate = '{folder}/state'\n"
                          f"disabled_plugins = ['io.containerd.grpc.v1.cri']\n[grpc]\naddress = '{self.address}'\n")
        environment = {**os.environ, "PATH": f"{pathlib.Path(criu).resolve().parent}:{os.environ['PATH']}"}
        environment.pop("XDG_RUNTIME_DIR", None)
        self.process = subprocess.Popen([*before, "containerd", "--config", config], env=environment,
                                        stdin=subprocess.DEVNULL, stdout=(folder / "log").open("w"), stderr=subprocess.STDOUT)
        common.wait_until(lambda: self.ctr("version", check=False).returncode == 0, "containerd does not start")
        self.add_image(folder)

    def ctr(self, *words, **more):
        return run("ctr", "--address", self.address, *words, **more)

    def add_image(self, folder):
        """As `docker save` writes it."""
        layout = folder / "image"
        layout.mkdir()
        with tarfile.open(layout / "layer.tar", "w") as layer:
            for entry in make_root(folder / "base").iterdir():
                layer.add(entry, entry.name)
        sum_ = run("sha256sum", layout / "layer.tar", stdout=subprocess.PIPE).stdout.split()[0]
        (layout / "config.json").write_text(json.dumps(
            {"architecture": "amd64", "os": "linux", "config": {"Cmd": ["/bin/sh"]}, "rootfs": {"type": "layers", "diff_ids": [f"sha256:{sum_}"]}}))
        (layout / "manifest.json").write_text(json.dumps([{"Config": "config.json", "RepoTags": ["kymo/bench:1"], "Layers": ["layer.tar"]}]))
        run("tar", "-C", layout, "-cf", folder / "image.tar", "manifest.json", "config.json", "layer.tar")
        self.ctr("images", "import", folder / "image.tar")

    def stop(self):
        self.process.terminate()
        self.process.wait()


def make_root(root):
    """The root of a container, which gets /usr from this machine."""
    for name in ("usr", "proc", "dev", "sys", "tmp", "etc", "files", "disk"):
        (root / name).mkdir(parents=True)
    for name in ("bin", "sbin", "lib", "lib64"):
        (root / name).symlink_to(f"usr/{name}")
    return root


class Side:
    """One setting of a cell: its kymod, and its program in a process or container."""
    count = 0

    def __init__(self, arguments, world, way, setting, stack):
        Side.count += 1
        self.arguments, self.world, self.way, self.setting = arguments, world, way, setting
        self.name = f"kymo-bench-{Side.count}"
        self.folder = world.folder / f"side-{Side.count}"
        self.folder.mkdir()
        stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
        groups = stack.enter_context(cgroups(setting.groups, self.name))
        self.target_groups = stack.enter_context(cgroups(setting.target_groups, f"{self.name}-target"))
        self.files = self.folder / "files"  # what the program needs
        self.files.mkdir()
        for file in (arguments.build.resolve() / "examples/churn/kymo-churn", arguments.build.resolve() / "tests/e2e/kymo-tasks", SHAPE):
            shutil.copy(file, self.files)
        self.containerd = None
        if way == "containerd":
            (self.folder / "containerd").mkdir()
            self.containerd = Containerd(self.folder / "containerd", setting.before, arguments.criu)
            stack.callback(self.containerd.stop)
            os.environ["CONTAINERD_ADDRESS"] = str(self.containerd.address)
        self.kymod = common.Kymod(arguments.build, arguments.criu, self.folder, "--runc-root", self.folder / "runc",
                                  "--podman-flags=" + " ".join(PODMAN), before=setting.before)
        stack.callback(self.kymod.stop)
        for daemon in filter(None, (self.kymod, self.containerd)):
            pid = str(daemon.process.pid)
            if setting.autogroup:
                pathlib.Path(f"/proc/{pid}/autogroup").write_text(str(setting.autogroup))
            for group in groups:
                (group / "cgroup.procs").write_text(pid)
        self.pid = 0
        self.child = None
        self.above = []  # files with the weights of the cgroups above its own
        stack.callback(self.end)
        self.requests = 0

    def words(self, files, disk):
        kind, *words = self.setting.program
        if words[0] == "writes":
            words[1] = f"{disk}/{self.name}.written"
        return {"churn": [f"{files}/kymo-churn"], "tasks": [f"{files}/kymo-tasks"],
                "shape": ["/usr/bin/python3", f"{files}/shape.py"]}[kind] + words

    def start(self):
        said = self.files / "said"
        said.unlink(missing_ok=True)
        getattr(self, "start_" + ("process" if self.way in PLAIN else self.way))()
        common.wait_until(lambda: said.exists() and said.stat().st_size, f"{self.setting.program} does not start in {self.folder}")
        time.sleep(0.3)  # until it has its memory
        self.above = weights_above(self.pid) if self.setting.weight else []
        for group in self.target_groups:
            for pid in [self.pid, *children_of(self.pid)]:
                (group / "cgroup.procs").write_text(str(pid))

    def command(self, files, disk):
        return ["/bin/sh", "-c", f'exec "$@" </dev/null >{files}/said 2>&1', "sh", *self.words(files, disk)]

    def mounts(self):
        return [("/usr", "/usr", "ro"), (self.files, "/files", "rw"), (self.world.disks.get("throttled", self.files), "/disk", "rw")]

    def start_process(self):
        # Processes of another mount namespace than kymod's would be dumped with all mounts.
        inside = ["nsenter", f"--mount=/proc/{self.kymod.process.pid}/ns/mnt"]
        self.child = subprocess.Popen([*inside, *self.command(self.files, self.world.disks.get("throttled"))], stdin=subprocess.DEVNULL,
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        self.pid = self.child.pid

    def start_runc(self):
        bundle = self.folder / "bundle"
        shutil.rmtree(bundle, ignore_errors=True)
        make_root(bundle / "rootfs")
        run("runc", "spec", cwd=bundle)
        spec = json.loads((bundle / "config.json").read_text())
        spec["process"].update(terminal=False, args=self.command("/files", "/disk"))
        spec["process"].pop("rlimits", None)
        spec["root"]["readonly"] = False
        spec["mounts"] += [{"source": str(source), "destination": to, "type": "bind", "options": ["rbind", how]} for source, to, how in self.mounts()]
        if self.setting.weight:
            spec["linux"]["resources"]["cpu"] = {"shares": self.setting.weight}
        spec["linux"]["namespaces"] = [one for one in spec["linux"]["namespaces"] if one["type"] != "network"]
        (bundle / "config.json").write_text(json.dumps(spec))
        self.runc("run", "--detach", "--bundle", bundle, self.name, stderr=subprocess.DEVNULL)
        state = self.runc("state", self.name, stdout=subprocess.PIPE).stdout
        self.pid = json.loads(state)["pid"]

    def runc(self, *words, **more):
        return run("runc", "--root", self.folder / "runc", *words, **more)

    def start_podman(self):
        root = self.folder / "podman-root"
        shutil.rmtree(root, ignore_errors=True)
        make_root(root)
        volumes = [word for source, to, how in self.mounts() for word in ("--volume", f"{source}:{to}:{how}")]
        weight = ["--cpu-shares", str(self.setting.weight)] if self.setting.weight else []
        self.podman("run", "--detach", "--name", self.name, *weight, "--network", "none", "--security-opt", "seccomp=unconfined",
                    "--ulimit", "nproc=1000:1000", "--ulimit", "nofile=5000:5000", *volumes, "--rootfs", root, *self.command("/files", "/disk"))
        self.pid = int(self.podman("inspect", "--format", "{{.State.Pid}}", self.name, stdout=subprocess.PIPE).stdout)

    @staticmethod
    def podman(*words, **more):
        return run("podman", *PODMAN, *words, **more)

    def start_containerd(self):
        mounts = [word for source, to, how in self.mounts() for word in ("--mount", f"type=bind,src={source},dst={to},options=rbind:{how}")]
        weight = ["--cpu-shares", str(self.setting.weight)] if self.setting.weight else []
        self.containerd.ctr("run", "--detach", "--null-io", *weight, *mounts, "docker.io/kymo/bench:1", self.name, *self.command("/files", "/disk"))
        for line in self.containerd.ctr("tasks", "list", stdout=subprocess.PIPE).stdout.splitlines():
            if line.split()[0] == self.name:
                self.pid = int(line.split()[1])

    def end(self):
        if self.way == "runc":
            self.runc("delete", "--force", self.name, check=False)
        elif self.way == "podman":
            self.podman("rm", "--force", "--time", "0", self.name, check=False)
        elif self.way == "containerd":
            self.containerd.ctr("tasks", "delete", "--force", self.name, check=False)
            self.containerd.ctr("containers", "delete", self.name, check=False)
        else:
            for pid in [self.pid, *children_of(self.pid)] if self.pid else ():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self.reap()
        self.pid = 0

    def reap(self):
        if self.child:
            self.child.wait()
        self.child = None

    def ask(self, *words):
        """Returns what the recording of a request says about it."""
        environment = {**os.environ, **({"CONTAINERD_ADDRESS": str(self.containerd.address)} if self.containerd else {})}
        stolen = stolen_ns()
        done = run(*self.kymod.kymo, *words, "--json", stdout=subprocess.PIPE, env=environment)
        stolen = stolen_ns() - stolen
        reply = json.loads(done.stdout)
        meta = pathlib.Path(reply["recording"].removesuffix(".tsv") + ".meta.json")
        common.wait_until(lambda: has_ended(meta), "a recording does not end")
        return {"duration_ns": reply["duration_ns"], "pid": reply.get("pid"), "stolen": stolen / reply["duration_ns"] / os.cpu_count(), **json.loads(meta.read_text())["about"]}

    def dump(self, *words):
        self.requests += 1
        images = self.world.disks[self.setting.disk] / f"{self.name}-{self.requests}"
        kind, target = ("process", str(self.pid)) if self.way in PLAIN else (self.way, self.name)
        direct = ["--no-stream"] if self.way == "direct" else []
        return images, self.ask("dump", kind, target, "--dir", images, *direct, *self.setting.options, *words)

    def request(self, direction, cold):
        """Makes one, and returns what is known of it, with its time as `time_ns`."""
        if not self.pid:
            self.start()
        self.signal(signal.SIGCONT)
        if direction == "dump":
            with busy(self.setting.loops):
                images, about = self.dump("--leave-running")
            about["time_ns"] = about["verdict"]["frozen_ns"]
        else:
            images, _ = self.dump()
            self.reap()
            if self.way in PLAIN:
                common.wait_until(lambda: not pathlib.Path(f"/proc/{self.pid}").exists(), "a process does not end after its dump")
            if cold:
                os.sync()
                pathlib.Path("/proc/sys/vm/drop_caches").write_text("3")
            with busy(self.setting.loops), holding(self.above, self.setting.weight):
                about = self.ask("restore", images)
            self.pid = about["pid"]
            about["time_ns"] = about["duration_ns"]
            for group in self.target_groups:
                (group / "cgroup.procs").write_text(str(self.pid))
        if self.setting.weight:  # else it would starve the other side
            self.signal(signal.SIGSTOP)
        run(*self.kymod.kymo, "delete", images)
        return about

    def signal(self, number):
        for pid in [self.pid, *children_of(self.pid)]:
            os.kill(pid, number)


def stolen_ns():
    """The CPU time that the hypervisor gave to others."""
    return int(pathlib.Path("/proc/stat").read_text().split()[8]) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def has_ended(meta):
    with contextlib.suppress(FileNotFoundError):  # kymod replaces it
        return json.loads(meta.read_text()).get("state") == "ended"
    return False


def children_of(pid):
    listed = pathlib.Path(f"/proc/{pid}/task/{pid}/children")
    with contextlib.suppress(OSError):
        return [int(one) for one in listed.read_text().split()]
    return []


def pairs_of(cause, way, direction, arguments, world):
    with contextlib.ExitStack() as stack:
        sides = {name: Side(arguments, world, way, getattr(cause, name), stack) for name in ("slow", "cure")}
        pairs = []
        for number in range(arguments.pairs + 1):
            pair = {name: sides[name].request(direction, cause.cold) for name in random.sample(list(sides), len(sides))}
            if number:
                pairs.append(pair)
        return pairs


def cells_of(arguments, world):
    def chosen(text, known, what):
        wanted = [word for word in text.split(",") if word] or list(known)
        if unknown := set(wanted) - set(known):
            sys.exit(f"verdicts: no such {what}: {', '.join(sorted(unknown))}; there are {', '.join(known)}")
        return wanted

    all_causes = causes(world.folder)
    names = chosen(arguments.only, dict.fromkeys(cause.name for cause in all_causes), "cause")
    for cause in (one for one in all_causes if one.name in names):
        for way in chosen(arguments.ways, WAYS, "way"):
            for direction in chosen(arguments.directions, DIRECTIONS, "direction"):
                if way in cause.ways and direction in cause.directions and not (way == "direct" and direction == "restore"):
                    yield cause, way, direction


def parser_of():
    parser = common.parser_of(__doc__)
    parser.add_argument("--pairs", type=int, default=5)
    for name in ("only", "ways", "directions"):
        parser.add_argument(f"--{name}", default="", help="separated by commas")
    parser.add_argument("--list", action="store_true", help="print the cells, and end")
    parser.add_argument("--keep", type=pathlib.Path, help="a file for all verdicts, as JSON. Cells that it has already are not made again")
    parser.add_argument("--folder", default="/var/tmp", help="a folder on a disk")
    parser.add_argument("--build", type=pathlib.Path, default=common.BUILD)
    parser.add_argument("--criu", default=common.CRIU)
    return parser


def pairs_or_none(cause, way, direction, arguments, world):
    """Prints why, if there are none."""
    if not world.can(cause.slow) or not world.can(cause.cure):
        print(f"| {cause.name} | {way} | {direction} | not made here |" + " |" * 6, flush=True)
        return None
    try:
        return pairs_of(cause, way, direction, arguments, world)
    except Failed as why:
        print(f"| {cause.name} | {way} | {direction} | failed |" + " |" * 6, flush=True)
        print(f"verdicts: {why}", file=sys.stderr)
        return []


def main():
    arguments = parser_of().parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the disks and programs are removed
    os.environ["PATH"] = f"{pathlib.Path(arguments.criu).resolve().parent}:{os.environ['PATH']}"
    kept = json.loads(arguments.keep.read_text()) if arguments.keep and arguments.keep.exists() else {}
    rows, failed = [], 0
    with common.scratch_folder(arguments.folder) as folder:
        (folder / "run").mkdir()
        world = World(folder)
        try:
            cells = list(cells_of(arguments, world))
            if arguments.list:
                print("\n".join(f"{cause.name:24}{way:12}{direction}" for cause, way, direction in cells))
                return 0
            print(f"{arguments.pairs} pairs; {os.cpu_count()} cores, kernel {os.uname().release}\n")
            print("| cause | way | direction | right | named | as it was | with the cure | shorter by | promised | kept |")
            print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |", flush=True)
            for cause, way, direction in cells:
                key = f"{cause.name}.{way}.{direction}"
                pairs = kept.get(key) or pairs_or_none(cause, way, direction, arguments, world)
                failed += pairs == []
                if not pairs:
                    continue
                rows.append(judge(cause, way, direction, pairs))
                print(rows[-1].text(), flush=True)
                kept[key] = pairs
                if arguments.keep:
                    arguments.keep.write_text(json.dumps(kept))
        finally:
            world.close()
    total = sum((row.counts for row in rows), collections.Counter())
    promises = [row.kept for row in rows if row.kept is not None]
    print(f"\n{summary_of(rows)}\n\n{total.total()} verdicts: {total['right']} right, {total['silent']} silent, {total['wrong']} wrong; "
          f"{sum(promises)} of {len(promises)} promises kept within a factor of two")
    return 0 if not failed and total["right"] >= 0.95 * total.total() and not total["wrong"] and sum(promises) >= 0.9 * len(promises) else 1


if __name__ == "__main__":
    sys.exit(main())
