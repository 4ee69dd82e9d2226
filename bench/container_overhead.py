#!/usr/bin/python3
"""What the daemon adds to a dump of a container, by runc and by podman.

    bench/container_overhead.py --dumps 20 --criu "$(scripts/setup --criu)"

A small container of busybox is dumped and left running, again and again, by kymod and by the bare command, in an order
drawn by lot. Printed are both wall times, in nanoseconds; kymod's own time, which is its request less the life of the runc or
podman that it started; and what podman adds over its runc, by its --print-stats. Checked: each dump has written pages and the
container runs on.
"""
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
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


def start_runc(folder, add_to=lambda root: None):
    """`add_to` adds what COMMAND needs to the root."""
    bundle = folder / "bundle"
    make_root(bundle / "rootfs")
    add_to(bundle / "rootfs")
    subprocess.run(["runc", "spec"], cwd=bundle, check=True)
    spec = json.loads((bundle / "config.json").read_text())
    spec["process"].update(terminal=False, args=COMMAND)
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


def remove_all(folder):
    subprocess.run(["runc", "--root", folder / "runc", "delete", "--force", "kymo-bench"], check=False,
                   stderr=subprocess.DEVNULL, **NULL)
    subprocess.run(["podman", *PODMAN, "rm", "--force", "--time", "0", "kymo-bench"], check=False,
                   stderr=subprocess.DEVNULL, **NULL)


def dump_by_kymo(kymo, kind, target):
    began = time.monotonic_ns()
    out = subprocess.run([*kymo, "dump", kind, "kymo-bench", "--leave-running", "--dir", target, "--json"],
                         check=True, capture_output=True, text=True).stdout
    measured = {"kymo": time.monotonic_ns() - began}
    reply = json.loads(out)
    if reply["stats"]["pages_written"] < 10:
        sys.exit(f"container_overhead: only {reply['stats']['pages_written']} pages were written")
    measured["own"] = reply["duration_ns"] - reply["command_time_ns"]
    if kind == "podman":
        said = json.loads((target / "work/podman-checkpoint.json").read_text())
        of_runc = said["container_statistics"][0]["runtime_checkpoint_duration"]
        measured["over_runc"] = (said["podman_checkpoint_duration"] - of_runc) * 1000
    subprocess.run([*kymo, "delete", target], check=True, capture_output=True)  # which waits for the recording's end
    return measured


def dump_bare(folder, kind, target):
    """The command that kymod starts, by itself."""
    commands = {"runc": ["runc", "--root", folder / "runc", "checkpoint", "--leave-running", "--image-path", target / "images",
                         "--work-path", target, "kymo-bench"],
                "podman": ["podman", *PODMAN, "container", "checkpoint", "--keep", "--print-stats", "--leave-running", "kymo-bench"]}
    target.mkdir()
    began = time.monotonic_ns()
    subprocess.run(commands[kind], check=True, stderr=subprocess.PIPE, **NULL)
    measured = {"bare": time.monotonic_ns() - began}
    shutil.rmtree(target)
    return measured


def round_of(kymo, folder, kind, number):
    ways = [lambda target: dump_by_kymo(kymo, kind, target), lambda target: dump_bare(folder, kind, target)]
    random.shuffle(ways)
    measured = {}
    for way in ways:
        measured |= way(folder / f"{kind}-{number}")
    return measured


def main():
    parser = common.parser_of(__doc__)
    parser.add_argument("--dumps", type=int, default=20)
    parser.add_argument("--build", type=pathlib.Path, default=common.BUILD)
    parser.add_argument("--criu", default=common.CRIU)
    parser.add_argument("--folder", default="/dev/shm", help="folder for the images")
    arguments = parser.parse_args()
    os.environ["PATH"] = f"{pathlib.Path(arguments.criu).resolve().parent}:{os.environ['PATH']}"  # the bare commands look there
    folder = pathlib.Path(tempfile.mkdtemp(prefix="kymo-bench-", dir=arguments.folder))
    tools = arguments.build.resolve() / "tools"
    kymo = [tools / "kymo/kymo", "--socket", folder / "kymod.sock"]
    daemon = subprocess.Popen(
        [tools / "kymod/kymod", "--socket", folder / "kymod.sock", "--state-dir", folder / "state", "--http",
         "127.0.0.1:0", "--criu", arguments.criu, "--runc-root", folder / "runc",
         "--podman-flags=" + " ".join(PODMAN)], stdout=subprocess.DEVNULL, stderr=(folder / "kymod.log").open("w"))
    try:
        until = time.monotonic() + 30
        while subprocess.run([*kymo, "ps"], capture_output=True).returncode != 0:
            if time.monotonic() > until:
                sys.exit("container_overhead: kymod does not answer:\n" + (folder / "kymod.log").read_text())
            time.sleep(0.05)
        start_runc(folder)
        start_podman(folder)
        samples = {}
        for kind in ("runc", "podman"):
            round_of(kymo, folder, kind, "warm-up")
            for number in range(arguments.dumps):
                for name, value in round_of(kymo, folder, kind, number).items():
                    samples.setdefault(f"{kind}.{name}", []).append(value)
    finally:
        remove_all(folder)
        daemon.terminate()
        daemon.wait()
        shutil.rmtree(folder, ignore_errors=True)
    common.finish(arguments, f"{arguments.dumps} dumps each, ns", samples)


if __name__ == "__main__":
    main()
