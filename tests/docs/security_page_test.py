"""Compares docs/security.md with the tests: each limit must name the tests that check it, and each named test must
exist."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/security.md").read_text()
# The forms of a test's name: `Suite.Test`, `Suite.Test…`, `Suite.*`, or `…Test` in the suite that was named last.
NAMED = re.compile(r"`(?:([A-Z]\w*)\.)?(…?[\w*]*(?:…\w*)*)`")
TEST = re.compile(r"\bTEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)")


def all_tests():
    found = set()
    for file in (ROOT / "tests").rglob("*.cc"):
        found.update(TEST.findall(file.read_text()))
    return found


def rows(heading):
    """The rows of the first table below this heading, each as a list of its cells."""
    below = PAGE.split(f"\n{heading}\n", 1)[1]
    table = re.search(r"(?:^\|.*\n)+", below, re.M).group(0)
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table.splitlines()[2:]]


def section(heading):
    return re.split(r"\n##+ ", PAGE.split(f"\n{heading}\n", 1)[1], maxsplit=1)[0]


class SecurityPageTest(unittest.TestCase):
    def test_each_test_that_it_names_exists(self):
        tests = all_tests()
        suite = None
        named = 0
        for match in NAMED.finditer(PAGE):
            if match.group(1):
                suite = match.group(1)
            elif not match.group(2).startswith("…"):
                continue
            name = match.group(2).removeprefix("…")
            pattern = re.escape(name).replace("…", ".*").replace(r"\*", ".*")
            if not re.search(r"[…*]$", name):
                pattern += "$"
            with self.subTest(named=match.group(0)):
                self.assertTrue(any(one == suite and re.match(pattern, test) for one, test in tests),
                                f"{suite} has no such test")
            named += 1
        self.assertGreater(named, 100)

    def test_each_limit_names_what_holds_it(self):
        for heading in ("## What enforces each limit", "### Readers of foreign files"):
            limits = rows(heading)
            self.assertGreater(len(limits), 8)
            for cells in limits:
                with self.subTest(limit=cells[0]):
                    self.assertEqual(len(cells), 3)
                    self.assertRegex(cells[2], "`.+`")

    def test_each_rule_of_these_sections_names_what_holds_it(self):
        for heading in ("### Folders of other users", "### The token", "### The HTTP port"):
            rules = re.split(r"\n- ", section(heading))[1:]
            self.assertGreater(len(rules), 2)
            for rule in rules:
                with self.subTest(rule=rule[:60]):
                    self.assertRegex(rule, r"`\w+\.(\w|\*|…)+`|\(documented", f"in {heading}")


unittest.main()
