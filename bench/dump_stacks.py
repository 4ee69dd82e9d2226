#!/usr/bin/python3
"""How much stack profiles of dumps cost: rounds of three dumps of one process: with --profiling-stacks, without it, and
again without it.

    bench/dump_stacks.py --pairs 30 --mib 512 --rate 99 --criu "$(scripts/setup --criu)"

The order in each round is random. Prints CRIU's frozen times in nanoseconds, and then two ratios for each round: with
stacks to without them, and, as a control, the two dumps without them. The control shows the noise. Checked: each dump
has as many pages as the process, and the profiles of the first daemon have samples of CRIU.
"""
import json
import pathlib
import sys

import common
import inside_cost


def check_stacks(kymod, way, reply, stem, about):
    """Ends the program unless the profile of the dump has samples of CRIU exactly if it should."""
    if reply["warnings"]:
        sys.exit(f"dump_stacks: {reply['warnings'][0]}")
    samples = None
    if "stacks" in about:
        common.wait_until(pathlib.Path(stem + ".pb.gz").exists, "a stack profile is not written")
        seen = json.loads(kymod.run_kymo("inspect", pathlib.Path(stem).parent.parent, "--json"))
        samples = sum(phase["criu"]["samples"] for one in seen["stacks"] for phase in one["phases"])
    if bool(samples) != (way == "with"):
        sys.exit(f"dump_stacks: a dump {way} stacks has {samples} samples of CRIU")
    return {}


def main():
    parser = inside_cost.parser_of(__doc__)
    parser.add_argument("--rate", type=int, default=99, help="samples of each CPU a second (default 99)")
    arguments = parser.parse_args()
    inside_cost.measure(arguments, {"with": [f"--profiling-stacks={arguments.rate}"], "without": [], "again": []}, check_stacks)


if __name__ == "__main__":
    main()
