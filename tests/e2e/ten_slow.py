#!/usr/bin/python3
"""Nine slow dumps and a slow restore, as CRIU's own files and kymo show them: docs/ten-slow.md.

    KYMO_TEST_KEEP=FOLDER build/release/tests/e2e/e2e_verdict_test --gtest_filter='VerdictTest.*'
    tests/e2e/ten_slow.py FOLDER            prints the page
    tests/e2e/ten_slow.py FOLDER --write    writes it

VerdictTest makes each cause on purpose and fails unless kymo names it first. FOUND has what people said who did not know
the causes."""

import argparse
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/ten-slow.md"
# The test; what slowed the request down, in the words of somebody who knows.
CASES = [
    ("BusyLoopsOnAllCpusLeaveCriuWaitingForOne", "busy loops on all CPUs"),
    ("ADiskThatWritesAtOnceLeavesCriuWaitingForIt", "a disk that writes each byte at once"),
    ("DirtyPagesThatMustBeWrittenFirstAreToldFromASlowDisk", "a limit for dirty pages: the kernel holds writers up"),
    ("HighCompressionLeavesCriuWaitingForIt", "compression at a high level"),
    ("ManyMappingsAreNamed", "15,000 memory mappings"),
    ("ScatteredMemoryIsNamed", "memory in very many pieces"),
    ("ManyFilesAreNamed", "3,600 open files"),
    ("AThreadInUninterruptibleSleepMakesFreezingSlow", "a thread in uninterruptible sleep, which cannot be frozen"),
    ("ADaemonThatIsStoppedAnswersLate", "a daemon that answers CRIU's notifications late"),
    ("ManyProcessesAreCreatedSlowly", "64 processes to be created (a restore)"),
]
# Whether somebody found the cause within a minute, in the order of CASES: by CRIU's log (-v4) and statistics; by the lines of kymo.
FOUND = {"criu": "", "kymo": ""}


def longest_pause(log):
    """The longest time between two lines of CRIU's log in seconds, and the line before it."""
    lines = re.findall(r"^\((\d+\.\d+)\) (.*)$", log, re.MULTILINE)
    pauses = [(float(after) - float(at), line) for (at, line), (after, _) in zip(lines, lines[1:])]
    return max(pauses) if pauses else (0, "")


def cell(text):
    return text.replace("|", "\\|").replace("`", "'").replace("<", "&lt;").replace("\t", " ").strip()


def row(folder, test, what, number):
    log = (folder / test / "criu.log").read_text(errors="replace")
    pause, line = longest_pause(log)
    shown = f"{log.count(chr(10)):,} lines; longest pause {1000 * pause:.0f} ms, after “{cell(line)[:70]}”"
    kymo = " ".join((folder / test / "kymo").read_text().strip().splitlines()[:3])
    found = ["yes" if FOUND[who][number:number + 1] == "y" else "no" for who in ("criu", "kymo")]
    return f"| {what} | {shown} | {found[0]} | {cell(kymo)} | {found[1]} |"


def page(folder):
    rows = "\n".join(row(folder, test, what, number) for number, (test, what) in enumerate(CASES))
    return f"""# Ten slow dumps and restores

Read this page if you want to know what you see when a dump or restore is slow, with and without Kymograph. In each of
ten cases one cause was made on purpose (`VerdictTest.*`; a test fails unless `kymo` names this cause first).
`tests/e2e/ten_slow.py` writes this page from what these tests keep.

`runc checkpoint` prints nothing about time, and `podman container checkpoint --print-stats` prints CRIU's statistics:
five times and five counts of pages. Both leave CRIU's log. So “CRIU” stands for all three: one reader had CRIU's log
(with `-v4`, as runc and podman ask for it) and its statistics, another one only the lines that `kymo explain`, `kymo
dump` or `kymo restore` prints. Neither knew the causes, and each had about a minute for a case.

| what slowed it down | CRIU's log | found by CRIU's log and statistics | what `kymo` says first | found by `kymo` |
| --- | --- | --- | --- | --- |
{rows}
| **found** | | {FOUND["criu"].count("y")} of {len(CASES)} | | {FOUND["kymo"].count("y")} of {len(CASES)} |

[phases.md](phases.md) lists all rules, and those whose causes cannot be made on a test machine.
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    text = page(arguments.folder)
    if arguments.write:
        PAGE.write_text(text)
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
