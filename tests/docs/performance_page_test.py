"""Compares docs/performance.md and the README with the measured results: all figures must be in generated parts."""

import json
import pathlib
import re
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

import documents  # noqa: E402  (it lies in bench/)
from parts import PARTS  # noqa: E402

# A number with a unit of speed or cost. The hand-written text of a document must not have one outside of code.
FIGURE = re.compile(r"\d[\d,.]*\s?(?:ns|µs|us|ms|s|[kMG]i?B/s|%|times|cores?)(?![\w/])")
CODE = re.compile(r"^```.*?^```$|^ {4}[^\n]*$|`[^`\n]*`", re.M | re.S)


def by_hand(text):
    """The text of a document without its generated parts and its code."""
    return CODE.sub("", documents.MARKED.sub("", text))


class PerformancePageTest(unittest.TestCase):
    def setUp(self):
        self.made = documents.generators(ROOT)
        self.results = json.loads((ROOT / documents.RESULTS).read_text())

    def test_the_generated_parts_are_what_the_results_make(self):
        for name in documents.DOCUMENTS:
            with self.subTest(name):
                text = (ROOT / name).read_text()
                self.assertEqual(text, documents.generated(text, self.made), "run scripts/bench --documents")

    def test_each_goal_that_is_surely_missed_has_a_reason(self):
        for part, result in self.results["parts"].items():
            for entry in result["figures"].values():
                if "goal" in entry and not entry["goal"]["met"] and entry["goal"]["certain"]:
                    with self.subTest(part=part, goal=entry["text"]):
                        self.assertNotEqual(documents.why_missed(part, entry["text"]), documents.NO_REASON)
        self.assertEqual(documents.why_missed("counter", "a goal that is always met"), documents.NO_REASON)

    def test_every_generator_has_its_place_in_one_document(self):
        texts = "".join((ROOT / name).read_text() for name in documents.DOCUMENTS)
        self.assertEqual(sorted(name for _, name, _ in documents.MARKED.findall(texts)), sorted(self.made))
        self.assertEqual(texts.count("<!-- end -->"), len(self.made))

    def test_no_figure_stands_outside_of_a_generated_part(self):
        for name in documents.DOCUMENTS:
            with self.subTest(name):
                self.assertEqual(FIGURE.findall(by_hand((ROOT / name).read_text())), [])

    def test_the_rule_finds_a_figure_by_hand_and_spares_code_and_generated_parts(self):
        mark = "<!-- generated: goals -->\n| 5 ms |\n<!-- end -->\n"
        for text in ("takes 5.2 ms.", "31 % more", "1.2 GB/s", "6.4 s or less", "4 times", "1.17 cores"):
            self.assertEqual(len(FIGURE.findall(by_hand(text + "\n" + mark))), 1, text)
        for text in ("`--deadline 30s`", "    kymo dump web   # 10 %", "512 MiB", "10 million rows", "Debian 12 or 13"):
            self.assertEqual(FIGURE.findall(by_hand(text + "\n" + mark)), [], text)

    def test_a_figure_changed_by_hand_is_noticed(self):
        text = "a\n<!-- generated: x -->\n\n5.2 ms\n\n<!-- end -->\nb\n"
        self.assertEqual(documents.generated(text, {"x": "5.2 ms"}), text)
        self.assertNotEqual(documents.generated(text, {"x": "3.9 ms"}), text)

    def test_the_results_say_where_when_and_how_they_were_measured(self):
        self.assertEqual(set(self.results["machine"]), {"cpu", "cores", "memory_gib", "kernel", "compiler"})
        for name, part in self.results["parts"].items():
            with self.subTest(name):
                self.assertIn(name, PARTS)
                self.assertEqual(set(part), {"date", "commit", "command", "seconds", "load", "figures"})
                self.assertEqual(set(part["figures"]), {figure.name for figure in PARTS[name].figures})
                for entry in part["figures"].values():
                    self.assertLessEqual(entry["low"], entry["median"])
                    self.assertLessEqual(entry["median"], entry["high"])

    def test_the_readmes_table_names_figures_that_are_measured(self):
        for what, here, beside in documents.COSTS + documents.EMBEDDING + documents.RATES:
            places = documents.PLACE.findall(here + beside)
            self.assertGreater(len(places), 0 if (what, here, beside) in documents.EMBEDDING else 1, what)
            for part, name, how in places:
                figure = next((figure for figure in PARTS[part].figures if figure.name == name), None)
                self.assertIsNotNone(figure, f"{what}: {part}:{name}")
                self.assertTrue(how != "ratio" or figure.beside, f"{what}: {name} has no rival")

    def test_the_demo_is_shortened_to_its_known_lines_and_says_where(self):
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder) / "demo.txt"
            log.write_text("`scripts/demo` at commit `abc`\n\n== set-up\ndumped pid 7 (job churn) in 1 ms\n  images     1 MiB\n"
                           "chatter\nit had counted to 5\nThe restore\n  The restore took 1 ms.\n  A cause, which the README leaves out.\n")
            self.assertEqual(documents.demo_text(log), "`scripts/demo` at commit `abc`:\n\n    dumped pid 7 (job churn) in 1 ms\n"
                             "    it had counted to 5\n      The restore took 1 ms.")

    def test_the_readmes_first_screen_shows_the_dump_and_the_restore_in_eight_lines(self):
        shown = self.made["demo"].splitlines()[2:]
        self.assertLessEqual(len(shown), 8)
        for begin in ("dumped pid ", "restored pid ", "it counts on: ", "  The process stood still for "):
            self.assertEqual(sum(line.startswith("    " + begin) for line in shown), 1, begin)

    def test_every_goal_that_is_not_met_is_in_the_list_and_has_a_line(self):
        goals = [(PARTS[part], name, entry) for part, result in self.results["parts"].items()
                 for name, entry in result["figures"].items() if "goal" in entry]
        missed = [(part, name) for part, name, entry in goals if not entry["goal"]["met"]]
        self.assertTrue(self.made["goals"].startswith(f"{len(goals)} goals, {len(missed)} of them not met."))
        for part, name in missed:
            text = next(figure.text for figure in part.figures if figure.name == name)
            self.assertIn(f"{text.replace('**', '')}: ", self.made["goals"])
            self.assertIn(f"\n- {text}: ", self.made["parts"])
        lines = [line for line in self.made["parts"].splitlines() if re.search(r", not met(, within the interval)?$", line)]
        self.assertEqual(len(lines), len(missed))


class NamedInDocumentsTest(unittest.TestCase):
    """The commands that the documents name must exist."""

    def setUp(self):
        self.texts = {path: path.read_text() for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md"))}

    def test_presets_exist(self):
        presets = json.loads((ROOT / "CMakePresets.json").read_text())
        kinds = {"ctest": "testPresets", "cmake": "configurePresets", "cmake --build": "buildPresets"}
        for path, text in self.texts.items():
            for command, name in re.findall(r"(ctest|cmake --build|cmake) --preset[ =](\w+)", text):
                self.assertIn(name, {preset["name"] for preset in presets[kinds[command]]}, f"{path.name}: {command} --preset {name}")

    def test_scripts_and_parts_of_the_benchmark_exist(self):
        for path, text in self.texts.items():
            for name in re.findall(r"(?<![\w/.-])(?:scripts|bench)/[\w.]+", text):
                self.assertTrue((ROOT / name.rstrip(".")).exists(), f"{path.name}: {name}")
            for part in re.findall(r"scripts/bench[ \n](\w+)`", text):
                self.assertIn(part, PARTS, path.name)


if __name__ == "__main__":
    unittest.main()
