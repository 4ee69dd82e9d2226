#!/usr/bin/python3
"""Deals the ten slow requests of docs/ten-slow.md for somebody who does not know their causes.

    KYMO_TEST_KEEP=KEPT build/release/tests/e2e/e2e_verdict_test --gtest_filter='VerdictTest.*'
    tests/e2e/ten_slow.py KEPT TRIAL KEY

TRIAL/kymo/N.txt has what kymo printed, TRIAL/criu/N CRIU's log and statistics. The numbers are drawn by lot, for each of the two
anew. The file KEY tells which cause has which number: keep it away from the reader."""

import argparse
import json
import pathlib
import random
import re

# Folders of the test, whose names would tell the cause.
FOLDER = re.compile(r"/tmp/kymo-[^\s/]+(/[^\s'\"),;:]*)?")
LOGS = ("dump.log", "restore.log")


def copy(source, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(FOLDER.sub("/FOLDER", source.read_text(errors="replace")))


def deal(kept, trial):
    """Copies all files. Returns the numbers of the causes for each way to look."""
    tests = sorted(folder.name for folder in kept.iterdir() if folder.is_dir())
    key = {}
    for way in ("kymo", "criu"):
        numbers = random.sample(range(1, len(tests) + 1), len(tests))
        key[way] = dict(zip(tests, numbers))
        for test, number in key[way].items():
            if way == "kymo":
                copy(kept / test / "kymo", trial / way / f"{number}.txt")
                continue
            for name in (*LOGS, "statistics"):
                if (kept / test / name).exists():
                    copy(kept / test / name, trial / way / str(number) / name)
    return key


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kept", type=pathlib.Path)
    parser.add_argument("trial", type=pathlib.Path)
    parser.add_argument("key", type=pathlib.Path)
    arguments = parser.parse_args()
    key = deal(arguments.kept, arguments.trial)
    arguments.key.write_text(json.dumps(key, indent=1) + "\n")
    print(f"dealt {len(key['kymo'])} requests to {arguments.trial}")


if __name__ == "__main__":
    main()
