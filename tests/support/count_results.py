#!/usr/bin/python3
"""Counts what a test runner reported, and holds its skips against tests/expected_skips.txt.

    count_results.py STAGE ctest JUNIT.xml...   ctest's reports (--output-junit)
    count_results.py STAGE bats FILE.tap
    count_results.py STAGE python FILE.log      unittest's output with -v
    count_results.py STAGE lint FILE.log        scripts/lint's output

A skip that the list does not expect in this stage, with this reason, counts as a failure. Prints a line for each skip and each
failure, and ends with the line `N passed, N failed, N skipped`. Exit 0 unless a report cannot be read.
"""

import fnmatch
import pathlib
import re
import sys
import xml.etree.ElementTree as tree

LIST = pathlib.Path(__file__).resolve().parent.parent / "expected_skips.txt"


class Expected:
    """The list: a line holds stages (joined by commas), a test (with * and ?), and a part of the reason that it prints."""

    def __init__(self, text):
        self.entries = []
        for number, line in enumerate(text.splitlines(), 1):
            if not line.strip() or line.startswith("#"):
                continue
            words = line.split(None, 2)
            if len(words) < 3:
                raise ValueError(f"line {number}: expected STAGES TEST REASON, found '{line}'")
            self.entries.append((words[0].split(","), words[1], words[2].strip()))

    def holds(self, stage, test, reason):
        name = "_".join(test.split())  # the names of bats and of the pages' tests have spaces
        return any(stage in stages and fnmatch.fnmatchcase(name, pattern) and part in reason
                   for stages, pattern, part in self.entries)


def gtest_reason(output):
    """What GTEST_SKIP was given: the lines between `FILE:LINE: Skipped` and the closing mark."""
    found = re.search(r": Skipped\n(.*?)\n*\[  SKIPPED \]", output, re.S)
    return " ".join(found.group(1).split()) if found else ""


def shortened(text, most=400):
    text = " ".join(text.split())
    return text if len(text) <= most else text[:most] + " ..."


def failure_reason(output):
    """Where and why: GoogleTest's first failure; of another runner the last of what it printed."""
    found = re.search(r"^(\S+:\d+: Failure\n.*?)\n\[  FAILED  \]", output, re.M | re.S)
    return shortened(found.group(1) if found else " ".join(output.split()[-60:]))


def inner_skips(name, output):
    """Skips inside one test of ctest: of a page (TAP) or of a Python file (unittest -v)."""
    for match in re.finditer(r"^\s*ok \d+ - (.*?) # SKIP ?(.*)$", output, re.M):
        yield f"{name}: {match.group(1)}", match.group(2)
    named = list(unittest_skips(output))
    for test, reason in named:
        yield f"{name}: {test}", reason
    counted = sum(int(count) for count in re.findall(r"^(?:OK|FAILED) \(.*?skipped=(\d+)", output, re.M))
    if counted > len(named):
        yield name, "unittest skipped tests and did not name them: run it with verbosity=2"


def unittest_skips(output):
    """A test's first line of documentation stands on a line of its own, before its result."""
    for match in re.finditer(r"^(test\w*) \(.*?\)(?:\n[^\n]*)? \.\.\. skipped (['\"])(.*)\2$", output, re.M):
        yield match.group(1), match.group(3)


def read_ctest(paths):
    passed = failed = 0
    skips = []
    for path in paths:
        for case in tree.parse(path).getroot().iter("testcase"):
            name, output = case.get("name"), case.findtext("system-out") or ""
            if case.find("failure") is not None or case.get("status") == "fail":
                failed += 1
                print(f"FAILED: {name}: {failure_reason(output)}")
            elif case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
                message = case.find("skipped").get("message", "") if case.find("skipped") is not None else ""
                skips.append((name, gtest_reason(output) or " ".join(output.split()[-40:]) or message or "it gave no reason"))
            else:
                passed += 1
                skips += inner_skips(name, output)
    return passed, failed, skips


def read_bats(paths):
    text = pathlib.Path(paths[0]).read_text()
    results = re.findall(r"^(ok|not ok) \d+ (.*)$((?:\n# .*$)*)", text, re.M)
    passed = failed = 0
    skips = []
    for result, name, notes in results:
        skip = re.search(r" # skip ?(.*)$", name)
        if skip:
            skips.append((name[:skip.start()], skip.group(1) or "it gave no reason"))
        elif result == "ok":
            passed += 1
        else:
            failed += 1
            said = notes.replace("\n# ", " ")
            print(f"FAILED: {name}: {shortened(said)}")
    planned = re.search(r"^1\.\.(\d+)$", text, re.M)
    if not planned or len(results) < int(planned.group(1)):
        print(f"bats: {len(results)} results of {planned.group(1) if planned else 'an unknown number of'} tests")
        failed += 1
    return passed, failed, skips


def read_python(paths):
    text = pathlib.Path(paths[0]).read_text()
    ran = re.findall(r"^Ran (\d+) tests?", text, re.M)
    if not ran:
        print("python: unittest did not reach its end")
        return 0, 1, []
    counts = dict(re.findall(r"(failures|errors|skipped)=(\d+)", text[text.rfind("\nRan "):]))
    failed = int(counts.get("failures", 0)) + int(counts.get("errors", 0))
    for name in re.findall(r"^(?:FAIL|ERROR): (.*)$", text, re.M):
        print(f"FAILED: {name}")
    skips = list(unittest_skips(text))
    skips += [("a test", "it gave no reason")] * (int(counts.get("skipped", 0)) - len(skips))
    return int(ran[-1]) - failed - int(counts.get("skipped", 0)), failed, skips


def read_lint(paths):
    text = pathlib.Path(paths[0]).read_text()
    closing = re.search(r"^(\d+) passed, (\d+) failed, \d+ skipped$", text, re.M)
    if not closing:
        print("lint: it did not reach its end")
        return 0, 1, []
    return int(closing.group(1)), int(closing.group(2)), re.findall(r"^lint: skipped: (\S+): (.*)$", text, re.M)


READERS = {"ctest": read_ctest, "bats": read_bats, "python": read_python, "lint": read_lint}


def main():
    if len(sys.argv) < 4 or sys.argv[2] not in READERS:
        sys.exit(__doc__)
    stage, runner, paths = sys.argv[1], sys.argv[2], sys.argv[3:]
    expected = Expected(LIST.read_text())
    passed, failed, skips = READERS[runner](paths)
    skipped = 0
    for test, reason in skips:
        if expected.holds(stage, test, reason):
            skipped += 1
            print(f"skipped: {stage}: {test}: {reason}")
        else:
            failed += 1
            print(f"FAILED, skipped and not in tests/expected_skips.txt: {stage}: {test}: {reason}")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")


if __name__ == "__main__":
    main()
