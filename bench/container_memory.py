#!/usr/bin/python3
"""How long a container of runc is frozen if its images are written to memory first, and if CRIU writes them to their disk.

    bench/container_memory.py --pairs 10 --mib 256 --folder /var/tmp --criu "$(scripts/setup --criu)"

A container with kymo-churn is dumped and left running, with a long deadline (memory first) and without one, in an order drawn
by lot. Printed are CRIU's frozen time and the time of the request, in nanoseconds, and the paired difference of the frozen
times. Checked: each dump has written all of the memory. Give --folder a disk: /dev/shm would compare memory with memory.
"""
import json
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

import common
import container_overhead

WAYS = {"memory": ["--deadline", "1h"], "disk": []}


def add_program(root, program):
    """Copies a program into the root, with the libraries that it loads."""
    said = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
    libraries = [word for word in said.split() if word.startswith("/")]
    for library in libraries:
        target = root / library.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, target)
    shutil.copy(program, root / "churn")


def dump(kymo, way, target, mib):
    out = subprocess.run([*kymo, "dump", "runc", "kymo-bench", "--leave-running", "--dir", target, "--json", *WAYS[way]],
                         check=True, capture_output=True, text=True).stdout
    reply = json.loads(out)
    if reply["stats"]["pages_written"] * 4096 < mib << 20:
        sys.exit(f"container_memory: only {reply['stats']['pages_written']} pages were written")
    if any("memory" in warning for warning in reply.get("warnings", [])):
        sys.exit(f"container_memory: {reply['warnings']}")
    subprocess.run([*kymo, "delete", target], check=True, capture_output=True)
    return {f"{way}.frozen": reply["stats"]["frozen_time_us"] * 1000, f"{way}.request": reply["duration_ns"]}


def round_of(kymo, folder, number, mib):
    ways = list(WAYS)
    random.shuffle(ways)
    measured = {}
    for way in ways:
        measured |= dump(kymo, way, folder / f"{way}-{number}", mib)
    measured["memory-disk.frozen"] = measured["memory.frozen"] - measured["disk.frozen"]
    return measured


def main():
    parser = common.parser_of(__doc__)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--mib", type=int, default=256)
    parser.add_argument("--build", type=pathlib.Path, default=common.BUILD)
    parser.add_argument("--criu", default=common.CRIU)
    parser.add_argument("--folder", default="/var/tmp", help="folder for the images, on a disk")
    arguments = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="kymo-bench-", dir=arguments.folder))
    build = arguments.build.resolve()
    kymo = [build / "tools/kymo/kymo", "--socket", folder / "kymod.sock"]
    daemon = subprocess.Popen(
        [build / "tools/kymod/kymod", "--socket", folder / "kymod.sock", "--state-dir", folder / "state", "--http",
         "127.0.0.1:0", "--criu", arguments.criu, "--runc-root", folder / "runc"],
        stdout=subprocess.DEVNULL, stderr=(folder / "kymod.log").open("w"))
    try:
        until = time.monotonic() + 30
        while subprocess.run([*kymo, "ps"], capture_output=True).returncode != 0:
            if time.monotonic() > until:
                sys.exit("container_memory: kymod does not answer:\n" + (folder / "kymod.log").read_text())
            time.sleep(0.05)
        container_overhead.COMMAND[:] = ["/churn", "--mib", str(arguments.mib)]
        container_overhead.start_runc(folder, lambda root: add_program(root, build / "examples/churn/kymo-churn"))
        samples = {}
        round_of(kymo, folder, "warm-up", 0)
        for number in range(arguments.pairs):
            for name, value in round_of(kymo, folder, number, arguments.mib).items():
                samples.setdefault(name, []).append(value)
    finally:
        subprocess.run(["runc", "--root", folder / "runc", "delete", "--force", "kymo-bench"], check=False,
                       stderr=subprocess.DEVNULL, **container_overhead.NULL)
        daemon.terminate()
        daemon.wait()
        shutil.rmtree(folder, ignore_errors=True)
    common.finish(arguments, f"{arguments.pairs} pairs of dumps of a runc container of {arguments.mib} MiB, ns", samples)


if __name__ == "__main__":
    main()
