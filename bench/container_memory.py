#!/usr/bin/python3
"""How long a container of runc is frozen, if its images are written to memory first, and if CRIU writes them to their
disk.

    bench/container_memory.py --pairs 10 --mib 256 --folder /var/tmp --criu "$(scripts/setup --criu)"

A container with kymo-churn is dumped and left running, with a long deadline (memory first) and without one, in random
order. Prints CRIU's frozen time and the time of the request, in nanoseconds, and the paired difference of the frozen
times. Checked: each dump has written all of the memory. --folder must be on a disk: /dev/shm would compare memory with
memory.
"""
import contextlib
import json
import random
import shutil
import subprocess
import sys

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


def dump(kymod, way, target, mib):
    reply = json.loads(kymod.run_kymo("dump", "runc", "kymo-bench", "--leave-running", "--dir", target, "--json", *WAYS[way]))
    if reply["stats"]["pages_written"] * 4096 < mib << 20:
        sys.exit(f"container_memory: only {reply['stats']['pages_written']} pages were written")
    if any("memory" in warning for warning in reply.get("warnings", [])):
        sys.exit(f"container_memory: {reply['warnings']}")
    kymod.run_kymo("delete", target)
    return {f"{way}.frozen": reply["stats"]["frozen_time_us"] * 1000, f"{way}.request": reply["duration_ns"]}


def round_of(kymod, folder, number, mib):
    ways = list(WAYS)
    random.shuffle(ways)
    measured = {}
    for way in ways:
        measured |= dump(kymod, way, folder / f"{way}-{number}", mib)
    measured["memory-disk.frozen"] = measured["memory.frozen"] - measured["disk.frozen"]
    return measured


def main():
    parser = common.parser_of(__doc__)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--mib", type=int, default=256)
    container_overhead.add_options(parser, "/var/tmp")
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    samples = {}
    with common.scratch_folder(arguments.folder) as folder, contextlib.ExitStack() as stack:
        kymod = common.Kymod(build, arguments.criu, folder, "--runc-root", folder / "runc")
        stack.callback(kymod.stop)
        stack.callback(container_overhead.remove_runc, folder)
        container_overhead.start_runc(folder, ["/churn", "--mib", str(arguments.mib)],
                                      lambda root: add_program(root, build / "examples/churn/kymo-churn"))
        round_of(kymod, folder, "warm-up", 0)
        for number in range(arguments.pairs):
            for name, value in round_of(kymod, folder, number, arguments.mib).items():
                samples.setdefault(name, []).append(value)
    common.finish(arguments, f"{arguments.pairs} pairs of dumps of a runc container of {arguments.mib} MiB, ns", samples)


if __name__ == "__main__":
    main()
