"""check_snippets.py finds the programs in a document, and reports the bad ones."""

import os
import pathlib
import tempfile
import unittest

import check_snippets

COMPILER = [os.environ.get("CXX", "c++")]


class CheckSnippetsTest(unittest.TestCase):
    def faults_of(self, text):
        with tempfile.TemporaryDirectory() as folder:
            document = pathlib.Path(folder) / "page.md"
            document.write_text(text)
            return check_snippets.check([document], COMPILER)

    def test_a_good_program(self):
        self.assertEqual(self.faults_of("words\n\n```cpp\nint main() {}\n```\n"), (1, []))

    def test_other_fences_are_left_alone(self):
        self.assertEqual(self.faults_of("```sh\nls\n```\n```\nint main() {\n```\n"), (0, []))

    def test_a_program_that_does_not_compile(self):
        count, faults = self.faults_of("```cpp\nint main() {}\n```\n\n```cpp\nint main() { return x; }\n```\n")
        self.assertEqual(count, 2)
        self.assertEqual(len(faults), 1)
        self.assertIn("page.md:6: does not compile", faults[0])

    def test_a_program_that_fails(self):
        _, faults = self.faults_of("```cpp\nint main() { return 3; }\n```\n")
        self.assertIn("page.md:2: ended with 3", faults[0])

    def test_a_recording_that_shows_nothing(self):
        program = '#include <fstream>\nint main() {{ std::ofstream("run.tsv") << "Time (ns)\\tc\\n1\\t5\\n{}"; }}\n'
        for rows in ("", "2\\t5\\n"):
            _, faults = self.faults_of(f"```cpp\n{program.format(rows)}```\n")
            self.assertIn("run.tsv shows nothing", faults[0])
        self.assertEqual(self.faults_of(f"```cpp\n{program.format('2' + chr(92) + 't6')}```\n"), (1, []))

    def test_a_service_that_fails_when_it_starts_again(self):
        program = '#include <fstream>\nint main() { if (std::ifstream("x")) return 1; std::ofstream("x"); }\n'
        self.assertEqual(self.faults_of(f"```cpp\n{program}```\n"), (1, []))
        count, faults = self.faults_of(f"```cpp restarts\n{program}```\n")
        self.assertEqual(count, 1)
        self.assertIn("ended with 1 in run 2", faults[0])


if __name__ == "__main__":
    unittest.main()
