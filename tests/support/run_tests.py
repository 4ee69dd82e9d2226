#!/usr/bin/python3
"""Runs the tests of one build, runs those that failed again, and counts them.

    run_tests.py STAGE [--strict] [--report FILE] [--test-dir DIR] [--scratch DIR] [CTEST_OPTION...]

STAGE is the test preset of the build, and the name of the stage in tests/expected_skips.txt. A test that fails is run
again, alone, up to two more times, after all others. If it passes then, it counts as passed and is listed: `flaky:
NAME, passed in run 2: WHY`. With --strict no test is run again. Nor is any if more than MAX_AGAIN tests failed, because
so many do not fail by chance.

A test that fails may leave programs running. With --scratch, the folder that tests/support/leftovers.py explains, they
are ended before a test runs again, so that they disturb nothing, and so that a flaky test does not fail the gate by what it has
left. If no test failed, nothing is ended, and scripts/test counts what is left as failures.

A skip counts as a failure unless the list expects it in this stage for this reason. Prints a line for each failure,
each flaky test and each skip, then the ten slowest tests, and ends with the line `N passed, N failed, N skipped`.
--report names a file that gets the same lines. --test-dir is a build folder to use instead of that of the preset. Exits
with 1 if a test failed.
"""

import argparse
import dataclasses
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as tree

import expected_skips
import leftovers

ROOT = pathlib.Path(__file__).resolve().parents[2]
RUNS = 3
MAX_AGAIN = 20
# A test that takes as long hangs, also on a slow and busy machine. Sanitizers make it slower.
WATCHDOG_S = {"asan": 900, "tsan": 900}
USUAL_WATCHDOG_S = 300
SLOWEST = 10


@dataclasses.dataclass
class Case:
    """One test of ctest, with the result of its last run."""
    name: str
    outcome: str  # passed, failed or skipped
    seconds: float
    output: str
    run: int = 1
    first_failure: str = ""


def run_ctest(build, options):
    """Runs ctest, shows its output, and returns {name: Case}. Raises an error if ctest wrote no report."""
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.xml"
        subprocess.run(["ctest", *build, "--output-on-failure", "--no-tests=error", "--test-output-size-passed", "200000",
                        "--output-junit", report, *options], cwd=ROOT, stdin=subprocess.DEVNULL, check=False)
        cases = [read_case(case) for case in tree.parse(report).getroot().iter("testcase")]
    return {case.name: case for case in cases}


def read_case(element):
    output = element.findtext("system-out") or ""
    skip = element.find("skipped")
    if element.find("failure") is not None or element.get("status") == "fail":
        outcome = "failed"
    elif skip is not None or element.get("status") in ("notrun", "disabled"):
        outcome = "skipped"
        output = output or (skip.get("message", "") if skip is not None else "")
    else:
        outcome = "passed"
    return Case(element.get("name"), outcome, float(element.get("time") or 0), output)


def exactly(name):
    """A regular expression of ctest that matches this name. CMake escapes differently, so other characters become
    dots."""
    return "^" + re.sub(r"\W", ".", name) + "$"


def end_leftovers(scratch):
    """Ends what failed tests have left running. Nothing below our parent, such as a build beside the tests, is theirs."""
    for pid in leftovers.end(scratch, os.getppid()) if scratch else []:
        print(f"left running by a failed test, and ended: process {pid}", flush=True)


def run_again(build, cases, scratch):
    """Runs each failed test again, alone, until it passes or has failed RUNS times."""
    if any(case.outcome == "failed" for case in cases.values()):
        end_leftovers(scratch)
    for case in [case for case in cases.values() if case.outcome == "failed"]:
        why = failure_reason(case.output)
        for run in range(2, RUNS + 1):
            print(f"\n== run {run} of {case.name}", flush=True)
            again = run_ctest(build, ["-R", exactly(case.name)])[case.name]
            again.run, again.first_failure = run, why
            cases[case.name] = again
            if again.outcome != "failed":
                break
            end_leftovers(scratch)


def gtest_reason(output):
    """The reason that was given to GTEST_SKIP: the lines between `FILE:LINE: Skipped` and the closing mark."""
    found = re.search(r": Skipped\n(.*?)\n*\[  SKIPPED \]", output, re.S)
    return " ".join(found.group(1).split()) if found else ""


def shortened(text, most=400):
    text = " ".join(text.split())
    return text if len(text) <= most else text[:most] + " ..."


FAILURES = (
    re.compile(r"^(\S+:\d+: Failure\n.*?)\n\[  FAILED  \]", re.M | re.S),  # GoogleTest
    re.compile(r"^not ok \d+ (.*?)(?=^(?:not )?ok \d|\Z)", re.M | re.S),  # TAP: bats, node
    re.compile(r"^(?:FAIL|ERROR): (.*?)(?=^=====|^-+\nRan |\Z)", re.M | re.S),  # unittest
)


def failure_reason(output):
    """Where and why a test failed: the first failure that its output names, or else the end of the output."""
    found = next(filter(None, (pattern.search(output) for pattern in FAILURES)), None)
    return shortened(found.group(1) if found else " ".join(output.split()[-60:])) or "it printed nothing"


def inner_skips(name, output):
    """The skips inside one test of ctest, from TAP (bats, node) and from unittest -v."""
    for match in re.finditer(r"^\s*ok \d+ (?:- )?(.*?) # (?i:skip) ?(.*)$", output, re.M):
        yield f"{name}: {match.group(1)}", match.group(2) or "it gave no reason"
    named = re.findall(r"^(test\w*) \(.*?\)(?:\n[^\n]*)? \.\.\. skipped (['\"])(.*)\2$", output, re.M)
    for test, _, reason in named:
        yield f"{name}: {test}", reason
    counted = sum(int(count) for count in re.findall(r"^(?:OK|FAILED) \(.*?skipped=(\d+)", output, re.M))
    if counted > len(named):
        yield name, "unittest skipped tests and did not name them: run it with verbosity=2"


def count(stage, cases, say):
    """Prints the tests that did not simply pass. Returns (passed, failed, skipped)."""
    expected = expected_skips.load()
    passed, failed, skips = 0, 0, []
    for case in cases.values():
        if case.outcome == "failed":
            failed += 1
            say(f"FAILED: {stage}: {case.name}: {failure_reason(case.output)}")
        elif case.outcome == "skipped":
            reason = gtest_reason(case.output) or " ".join(case.output.split()[-40:]) or "it gave no reason"
            skips.append((case.name, reason))
        else:
            passed += 1
            skips += inner_skips(case.name, case.output)
            if case.run > 1:
                say(f"flaky: {case.name}, passed in run {case.run}: {case.first_failure}")
    skipped = 0
    for test, reason in skips:
        if expected.holds(stage, test, reason):
            skipped += 1
            say(f"skipped: {stage}: {test}: {reason}")
        else:
            failed += 1
            say(f"FAILED, skipped and not in tests/expected_skips.txt: {stage}: {test}: {reason}")
    return passed, failed, skipped


def say_slowest(cases, say):
    slowest = sorted(cases.values(), key=lambda case: -case.seconds)[:SLOWEST]
    say("slowest: " + ", ".join(f"{case.name} {case.seconds:.1f} s" for case in slowest))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stage")
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("--report", type=pathlib.Path)
    parser.add_argument("--test-dir")
    parser.add_argument("--scratch")
    arguments, options = parser.parse_known_args()
    lines = []

    def say(line):
        print(line, flush=True)
        lines.append(line)

    build = ["--test-dir", arguments.test_dir] if arguments.test_dir else ["--preset", arguments.stage]
    build += ["--timeout", str(WATCHDOG_S.get(arguments.stage, USUAL_WATCHDOG_S))]
    cases = run_ctest(build, options)
    failures = sum(case.outcome == "failed" for case in cases.values())
    if failures > MAX_AGAIN:
        say(f"{failures} tests failed, more than {MAX_AGAIN}: none is run again")
    elif not arguments.strict:
        run_again(build, cases, arguments.scratch)
    print()
    passed, failed, skipped = count(arguments.stage, cases, say)
    say_slowest(cases, say)
    say(f"{passed} passed, {failed} failed, {skipped} skipped")
    if arguments.report:
        arguments.report.write_text("\n".join(lines) + "\n")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
