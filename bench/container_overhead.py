#!/usr/bin/python3
"""How much time kymod adds to a dump of a container, with runc and with podman.

    bench/container_overhead.py --dumps 20 --criu "$(scripts/setup --criu)"

A small container of busybox is dumped and left running, repeatedly, by kymod and by the bare command, in random order.
Prints both elapsed times, in nanoseconds; kymod's own time (its request, minus the life of the runc or podman that it
started); and what podman adds to its runc, by podman's --print-stats. Checked: each dump has written pages, and the
container runs on.
"""
import contextlib
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import time

import common

COMMAND = ["/bin/sh", "-c", "while true; do sleep 0.1; done"]
PODMAN = ["--cgroup-manager=cgroupfs", "--runtime", "runc"]
NULL = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}


def make_root(root):
    for name in ("bin", "proc", "dev", "sys", "tmp", "etc"):
        (root / name).mkdir(parents=True)
    shutil.copy(shutil.which("busybox"), root / "bin/busybox")
    for name in ("sh", "sleep"):
        (root / "bin" / name).symlink_to("busybox")


def start_runc(folder, command=COMMAND, add_to=lambda root: None):
    """`add_to` copies into the root what the command needs."""
    bundle = folder / "bundle"
    make_root(bundle / "rootfs")
    add_to(bundle / "rootfs")
    subprocess.run(["runc", "spec"], cwd=bundle, check=True)
    spec = json.loads((bundle / "config.json").read_text())
    spec["process"].update(terminal=False, args=command)
    spec["process"].pop("rlimits", None)
    spec["linux"]["namespaces"] = [s for s in spec["linux"]["namespaces"] if s["type"] != "network"]
    (bundle / "config.json").write_text(json.dumps(spec))
    subprocess.run(["runc", "--root", folder / "runc", "run", "--detach", "--bundle", bundle, "kymo-bench"],
                   check=True, stderr=subprocess.DEVNULL, **NULL)


def start_podman(folder):
    make_root(folder / "root")
    subprocess.run(["podman", *PODMAN, "run", "--detach", "--name", "kymo-bench", "--network", "none",
                    "--security-opt", "seccomp=unconfined", "--ulimit", "nproc=1000:1000", "--ulimit",
                    "nofile=1000:1000", "--rootfs", folder / "root", *COMMAND], check=True, **NULL)


def remove_runc(folder):
    subprocess.run(["runc", "--root", folder / "runc", "delete", "--force", "kymo-bench"], check=False,
                   stderr=subprocess.DEVNULL, **NULL)


def remove_podman():
    subprocess.run(["podman", *PODMAN, "rm", "--force", "--time", "0", "kymo-bench"], check=False,
                   stderr=subprocess.DEVNULL, **NULL)


def dump_by_kymo(kymod, kind, target):
    began = time.monotonic_ns()
    out = kymod.run_kymo("dump", kind, "kymo-bench", "--leave-running", "--dir", target, "--json")
    measured = {"kymo": time.monotonic_ns() - began}
    reply = json.loads(out)
    if reply["stats"]["pages_written"] < 10:
        sys.exit(f"container_overhead: only {reply['stats']['pages_written']} pages were written")
    measured["own"] = reply["duration_ns"] - reply["command_time_ns"]
    if kind == "podman":
        said = json.loads((target / "work/podman-checkpoint.json").read_text())
        of_runc = said["container_statistics"][0]["runtime_checkpoint_duration"]
        measured["over_runc"] = (said["podman_checkpoint_duration"] - of_runc) * 1000
    kymod.run_kymo("delete", target)  # waits for the end of the recording
    return measured


def dump_bare(folder, kind, target):
    """The command that kymod starts, without kymod."""
    commands = {"runc": ["runc", "--root", folder / "runc", "checkpoint", "--leave-running", "--image-path", target / "images",
                         "--work-path", target, "kymo-bench"],
                "podman": ["podman", *PODMAN, "container", "checkpoint", "--keep", "--print-stats", "--leave-running", "kymo-bench"]}
    target.mkdir()
    began = time.monotonic_ns()
    subprocess.run(commands[kind], check=True, stderr=subprocess.PIPE, **NULL)
    measured = {"bare": time.monotonic_ns() - began}
    shutil.rmtree(target)
    return measured


def round_of(kymod, folder, kind, number):
    ways = [lambda target: dump_by_kymo(kymod, kind, target), lambda target: dump_bare(folder, kind, target)]
    random.shuffle(ways)
    measured = {}
    for way in ways:
        measured |= way(folder / f"{kind}-{number}")
    return measured


def add_options(parser, folder):
    parser.add_argument("--build", type=pathlib.Path, default=common.BUILD)
    parser.add_argument("--criu", default=common.CRIU)
    parser.add_argument("--folder", default=folder, help="folder for the images")


def main():
    parser = common.parser_of(__doc__)
    parser.add_argument("--dumps", type=int, default=20)
    add_options(parser, "/dev/shm")
    arguments = parser.parse_args()
    os.environ["PATH"] = f"{pathlib.Path(arguments.criu).resolve().parent}:{os.environ['PATH']}"  # the bare commands find criu by PATH
    samples = {}
    with common.scratch_folder(arguments.folder) as folder, contextlib.ExitStack() as stack:
        kymod = common.Kymod(arguments.build, arguments.criu, folder, "--runc-root", folder / "runc", "--podman-flags=" + " ".join(PODMAN))
        stack.callback(kymod.stop)
        stack.callback(remove_runc, folder)
        stack.callback(remove_podman)
        start_runc(folder)
        start_podman(folder)
        for kind in ("runc", "podman"):
            round_of(kymod, folder, kind, "warm-up")
            for number in range(arguments.dumps):
                for name, value in round_of(kymod, folder, kind, number).items():
                    samples.setdefault(f"{kind}.{name}", []).append(value)
    common.finish(arguments, f"{arguments.dumps} dumps each, ns", samples)


if __name__ == "__main__":
    main()
