"""Reads the list of the tests that may be skipped, and why: tests/expected_skips.txt."""

import fnmatch
import pathlib

LIST = pathlib.Path(__file__).resolve().parent.parent / "expected_skips.txt"


class ExpectedSkips:
    """The lines of the list. A line has stages (joined by commas), a test (with * and ?), and a part of the reason that
    the test prints."""

    def __init__(self, text):
        self.entries = []
        for number, line in enumerate(text.splitlines(), 1):
            if not line.strip() or line.startswith("#"):
                continue
            words = line.split(None, 2)
            if len(words) < 3:
                raise ValueError(f"tests/expected_skips.txt, line {number}: expected STAGES TEST REASON, found '{line}'")
            self.entries.append((words[0].split(","), words[1], words[2].strip()))

    def holds(self, stage, test, reason):
        name = "_".join(test.split())  # the names of bats tests and of tests of pages have spaces
        return any(stage in stages and fnmatch.fnmatchcase(name, pattern) and part in reason
                   for stages, pattern, part in self.entries)


def load():
    return ExpectedSkips(LIST.read_text())
