"""Compiles and runs every C++ program shown in the README and in docs/.

A block fenced as ```cpp must be a whole program that exits with 0. It is linked with the libkymo of this build, and
runs in an empty folder. One fenced as ```cpp restarts runs twice there, as a service does. If it leaves a recording,
somebody who reads it must see what the program counted: the last row differs from the first. Prints one line for each fault. Exits with 1 if there is any."""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

BLOCK = re.compile(r"^```cpp( restarts)?\n(.*?)^```$", re.M | re.S)
RUN_SECONDS = 30


def snippets(path):
    """(line number, text, how often to run it) of each C++ block."""
    text = path.read_text()
    return [(text.count("\n", 0, match.start()) + 2, match.group(2), 2 if match.group(1) else 1)
            for match in BLOCK.finditer(text)]


def fault_of(source, flags, folder, runs):
    """Why the program failed, or None."""
    unit, program = folder / "snippet.cc", folder / "snippet"
    unit.write_text(source)
    command = [flags[0], "-std=c++20", "-Wall", "-Wextra", "-Werror", str(unit), "-o", str(program), *flags[1:]]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    if built.returncode:
        return f"does not compile:\n{built.stderr}"
    for run in range(1, runs + 1):
        try:
            ran = subprocess.run([str(program)], cwd=folder, capture_output=True, text=True, check=False,
                                 timeout=RUN_SECONDS)
        except subprocess.TimeoutExpired:
            return f"still ran after {RUN_SECONDS} s"
        if ran.returncode:
            return f"ended with {ran.returncode} in run {run}: {ran.stderr}"
    return next((f"{file.name} shows nothing: its last row is its first, or has the same values"
                 for file in sorted(folder.glob("*.tsv")) if shows_nothing(file)), None)


def shows_nothing(file):
    """Whether each figure of a report on this recording is 0, or missing."""
    rows = [line.split("\t")[1:] for line in file.read_text().splitlines()[1:]]
    return not file.name.endswith(".gaps.tsv") and (not rows or rows[0] == rows[-1])


def check(documents, flags):
    """(number of snippets, faults)."""
    count, faults = 0, []
    for path in documents:
        for line, source, runs in snippets(path):
            count += 1
            with tempfile.TemporaryDirectory() as folder:
                fault = fault_of(source, flags, pathlib.Path(folder), runs)
            if fault:
                faults.append(f"{path.name}:{line}: {fault}")
    return count, faults


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=pathlib.Path, required=True)
    parser.add_argument("flags", nargs="+", help="compiler, then its flags")
    arguments = parser.parse_args()
    documents = [arguments.root / "README.md", *sorted((arguments.root / "docs").glob("*.md"))]
    count, faults = check(documents, arguments.flags)
    if count == 0:
        faults.append("found no C++ block in README.md and docs/*.md: the check has lost its object")
    print(*faults, f"{count} programs, {len(faults)} faults", sep="\n")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
