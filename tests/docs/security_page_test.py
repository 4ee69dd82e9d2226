"""Compares docs/security.md with security_limits.txt, which names the tests of each limit: each limit must have a line
there, each line must be of a limit, and each named test must exist."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/security.md").read_text()
LINES = [line.split(": ", 1) for line in pathlib.Path(__file__).with_name("security_limits.txt").read_text().splitlines()
         if line and not line.startswith("#")]
TEST = re.compile(r"\bTEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)")
# What is no test of GoogleTest: tests of bats, and tests that CMake names.
OTHERS = re.compile(r"\w+\.bats|fuzz|export\.refusals|web\.stored_page")


def all_tests():
    found = set()
    for file in (ROOT / "tests").rglob("*.cc"):
        found.update(TEST.findall(file.read_text()))
    return found


def plain(text):
    return " ".join(text.replace("**", "").split())


def rules(text):
    return [plain(rule) for rule in re.findall(r"(?:^|\n)- ((?:.|\n(?!- |\n))+)", text)]


def section(heading):
    return re.split(r"\n##+ ", PAGE.split(f"\n{heading}\n", 1)[1], maxsplit=1)[0]


def readers():
    """What a reader of foreign files may not: the first column of that table."""
    table = re.search(r"(?:^\|.*\n)+", section("### Readers of foreign files"), re.M).group(0)
    return [plain(line.strip("|").split(" | ")[0]) for line in table.splitlines()[2:]]


class SecurityPageTest(unittest.TestCase):
    def test_each_test_that_is_named_exists(self):
        tests = all_tests()
        named = 0
        for limit, names in LINES:
            for name in names.split():
                if OTHERS.fullmatch(name):
                    continue
                suite, test = name.split(".")
                pattern = re.escape(test).replace("…", ".*").replace(r"\*", ".*")
                with self.subTest(limit=limit, named=name):
                    self.assertTrue(any(one == suite and re.fullmatch(pattern, other) for one, other in tests),
                                    f"{suite} has no such test")
                named += 1
        self.assertGreater(named, 100)

    def test_each_limit_has_its_tests(self):
        limits = readers()
        self.assertGreater(len(limits), 8)
        for heading in ("## What enforces each limit", "### Folders of other users", "### The token", "### The HTTP port"):
            found = rules(section(heading))
            self.assertGreater(len(found), 2)
            limits += found
        for limit in limits:
            with self.subTest(limit=limit[:60]):
                self.assertEqual(sum(limit.startswith(begin) for begin, _ in LINES), 1)

    def test_each_line_is_of_a_limit(self):
        all_rules = rules(PAGE) + readers() + [plain(part) for part in PAGE.split("\n\n")]
        for begin, _ in LINES:
            with self.subTest(line=begin):
                self.assertTrue(any(rule.startswith(begin) for rule in all_rules), "docs/security.md has no such limit")


if __name__ == "__main__":
    unittest.main()
