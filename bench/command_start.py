#!/usr/bin/python3
"""How long a command takes from its start to its end if it has nothing to do: kymo, criu and true, in turns.

    bench/command_start.py --rounds 40 --criu "$(scripts/setup --criu)"

Checked: each exits with 0, and those that have a version print it.
"""
import pathlib
import subprocess
import sys
import time

import common


def timed(command, says):
    began = time.monotonic_ns()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    took = time.monotonic_ns() - began
    if done.returncode != 0 or says not in done.stdout.lower():
        sys.exit(f"command_start: {' '.join(map(str, command))} ended with {done.returncode} and said: {done.stdout}{done.stderr}")
    return took


def main():
    parser = common.parser_of(__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--build", type=pathlib.Path, default=common.BUILD)
    parser.add_argument("--criu", default=common.CRIU)
    options = parser.parse_args()
    commands = {"kymo": ([options.build / "tools/kymo/kymo", "--version"], "kymo"), "criu": ([options.criu, "--version"], "version"),
                "true": (["/bin/true"], "")}
    samples = {name: [] for name in commands}
    for number in range(options.rounds + 1):
        for name, (command, says) in commands.items():
            took = timed(command, says)
            if number > 0:  # the first round only loads the programs into memory
                samples[name].append(took)
    common.finish(options, f"{options.rounds} rounds, ns", samples)


if __name__ == "__main__":
    main()
