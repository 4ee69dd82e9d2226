"""Holds docs/architecture.md against the tree: each file that it names exists, and each function or class is in the file beside it."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/architecture.md").read_text()
FILE = r"(?:src|include|tools|tests|scripts|bench|docs|cmake)/[\w./*-]+"
SPAN = re.compile(r"`([^`\n]+)`")
# A name and the file that has it, up to two names before the file: "`Sampler::read()` in `src/recorder/metrics/registry.cc`".
NAMED = re.compile(r"`([^`\n]+)`(?: (?:and|or) `([^`\n]+)`)? in `(" + FILE + ")`")
PLACEHOLDERS = ("NAME", "VERB")


def named_files():
    for span in SPAN.findall(PAGE):
        if re.fullmatch(FILE, span) and not any(word in span for word in PLACEHOLDERS):
            yield span


def named_places():
    for match in NAMED.finditer(PAGE):
        for name in filter(None, match.groups()[:2]):
            yield name, match.group(3)


class ArchitecturePageTest(unittest.TestCase):
    def test_each_file_that_it_names_exists(self):
        files = set(named_files())
        self.assertGreater(len(files), 60, "the page's spans were found")
        for file in files:
            self.assertTrue(list(ROOT.glob(file.rstrip("/"))), f"{file} does not exist")

    def test_each_name_is_in_the_file_beside_it(self):
        places = set(named_places())
        self.assertGreater(len(places), 25, "the page's places were found")
        for name, file in places:
            *_, word = re.findall(r"[\w-]+", name.replace("::", " ").replace("()", ""))
            texts = [path.read_text() for path in ROOT.glob(file) if path.is_file()]
            self.assertTrue(any(re.search(rf"\b{re.escape(word)}\b", text) for text in texts), f"{file} has no {name}")


if __name__ == "__main__":
    unittest.main()
