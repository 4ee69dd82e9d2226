#!/usr/bin/python3
"""What the daemon adds to a dump of a container: its request less the life of the runc or podman that it started.

    bench/container_overhead.py --dumps 20 --criu "$(scripts/setup --criu)"

A small container of busybox is dumped and left running, again and again, by runc and by podman. Printed are the medians
of the request, of the command, and of what is left, which is kymod's; for podman, beside it, what podman adds of its own
over runc, as its --print-stats tells it. Checked: each dump has written pages and the container runs on.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

COMMAND = ["/bin/sh", "-c", "while true; do sleep 0.1; done"]
PODMAN = ["--cgroup-manager=cgroupfs", "--runtime", "runc"]
NULL = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}


def make_root(root):
    for name in ("bin", "proc", "dev", "sys", "tmp", "etc"):
        (root / name).mkdir(parents=True)
    shutil.copy(shutil.which("busybox"), root / "bin/busybox")
    for name in ("sh", "sleep"):
        (root / "bin" / name).symlink_to("busybox")


def start_runc(folder):
    bundle = folder / "bundle"
    make_root(bundle / "rootfs")
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


def dump(kymo, kind, target):
    out = subprocess.run([*kymo, "dump", kind, "kymo-bench", "--leave-running", "--dir", target, "--json"],
                         check=True, capture_output=True, text=True).stdout
    reply = json.loads(out)
    if reply["stats"]["pages_written"] < 10:
        sys.exit(f"container_overhead: only {reply['stats']['pages_written']} pages were written")
    measured = {"request": reply["duration_ns"] / 1e6, "command": reply["command_time_ns"] / 1e6}
    measured["kymod's"] = measured["request"] - measured["command"]
    if kind == "podman":
        said = json.loads((target / "work/podman-checkpoint.json").read_text())
        of_runc = said["container_statistics"][0]["runtime_checkpoint_duration"]
        measured["podman's over runc"] = (said["podman_checkpoint_duration"] - of_runc) / 1e3
    shutil.rmtree(target)
    return measured


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dumps", type=int, default=20)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--criu", default="criu")
    parser.add_argument("--folder", default="/dev/shm", help="where the images go")
    arguments = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="kymo-bench-", dir=arguments.folder))
    tools = pathlib.Path(arguments.build).resolve() / "tools"
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
        print(f"{os.cpu_count()} cores, kernel {os.uname().release}, {arguments.dumps} dumps each, medians in ms")
        for kind in ("runc", "podman"):
            dump(kymo, kind, folder / "warm-up")
            runs = [dump(kymo, kind, folder / f"{kind}-{n}") for n in range(arguments.dumps)]
            for name in runs[0]:
                values = [run[name] for run in runs]
                print(f"{kind:8}{name:20}{statistics.median(values):9.1f}   "
                      f"{min(values):.1f} to {max(values):.1f}")
    finally:
        remove_all(folder)
        daemon.terminate()
        daemon.wait()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
