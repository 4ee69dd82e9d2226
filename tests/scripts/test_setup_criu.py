"""Tests how scripts/setup chooses a CRIU: pinned files, newer versions, kernels. scripts/test runs it."""

import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Variables and functions that scripts/setup defines before it sources the file.
BEGIN = """
set -euo pipefail
root={root}; deps=$root/.deps
say() {{ printf 'setup: %s\\n' "$*" >&2; }}
die() {{ say "$*"; exit 1; }}
as_root() {{ "$@"; }}
. {source}
"""
SUM = "0" * 64


class SetupCriuTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "scripts").mkdir()

    def bash(self, text):
        begin = BEGIN.format(root=self.root, source=ROOT / "scripts/setup_criu.bash")
        return subprocess.run(["bash", "-c", begin + text], capture_output=True, text=True, check=False)

    def compare(self, pinned, fetched):
        (self.root / "scripts/criu.pins").write_text(pinned)
        (self.root / "packages.txt").write_text(fetched)
        return self.bash("compare_with_pins $root/packages.txt forky")

    def test_what_is_as_pinned_is_taken_in_silence(self):
        line = f"forky criu 4.2.1-1 amd64 {SUM}\n"
        said = self.compare(line, line)
        self.assertEqual((said.returncode, said.stderr), (0, ""))

    def test_a_suite_that_has_moved_is_taken_and_said_in_one_line(self):
        said = self.compare(f"forky criu 4.2.1-1 amd64 {SUM}\ntrixie criu 4.2.1-2 amd64 {SUM}\n",
                            f"forky criu 4.2.1-2 amd64 {SUM}\nforky libnet9 1-1 amd64 {SUM}\n")
        self.assertEqual(said.returncode, 0)
        self.assertEqual(said.stderr.count("\n"), 1)
        self.assertIn("suite forky has moved", said.stderr)
        self.assertIn("criu 4.2.1-1 -> 4.2.1-2, libnet9 (none) -> 1-1", said.stderr)

    def test_a_pinned_version_with_other_contents_is_refused(self):
        said = self.compare(f"forky criu 4.2.1-1 amd64 {SUM}\n", f"forky criu 4.2.1-1 amd64 {'1' * 64}\n")
        self.assertEqual(said.returncode, 1)
        self.assertIn("criu 4.2.1-1 of suite forky is not the file that scripts/criu.pins names", said.stderr)

    def serves(self, kernel, version):
        criu = self.root / "criu"
        criu.write_text(f"#!/bin/sh\n[ $1 = check ] && echo Looks good. || echo Version: {version}\n")
        criu.chmod(0o755)
        return self.bash(f"uname() {{ echo {kernel}; }}; criu_serves $root/criu").returncode == 0

    def test_an_old_criu_serves_on_kernels_before_6_16_alone(self):
        for kernel, version, good in (("6.15.3-amd64", "4.1.1", True), ("6.16.0", "4.1.1", False),
                                      ("6.18.44-x", "4.1.1", False), ("6.18.44-x", "4.2", True),
                                      ("7.0", "4.2.1", True), ("7.0", "3.17.1", False), ("6.1.0-9", "3.17.1", True),
                                      ("6.16.1", "4.10", True)):
            self.assertEqual(self.serves(kernel, version), good, (kernel, version))

    def installed(self, good):
        """Runs install_criu with two CRIUs that pass their own check. Those in `good` also dump and restore."""
        (self.root / ".deps/bin").mkdir(parents=True)
        first, second = self.root / "criu", self.root / ".deps/bin/criu"
        for criu in (first, second):
            criu.write_text("#!/bin/sh\n[ $1 = check ] && echo Looks good. || echo Version: 4.2\n")
            criu.chmod(0o755)
        stub = "\n".join([
            "command() { [ \"$*\" = '-v criu' ] && echo $root/criu; }",  # Debian's own CRIU, which would come second
            "criu_works() { case \"$1\" in $root/*) return 0;; esac; return 1; }",
            "needs_newer_sockets() { false; }", "purpose=demo",
            "criu_restores() { case \"$1\" in " + " | ".join([*map(str, good), "none"]) + ") ;; *) return 1;; esac; }"])
        return self.bash(f"{stub}\ninstall_criu && code=0 || code=$?; find_criu || echo nothing; exit $code")

    def test_a_criu_whose_trial_fails_is_not_used(self):
        said = self.installed([self.root / ".deps/bin/criu"])
        self.assertEqual(said.returncode, 0, said.stderr)
        self.assertEqual(said.stdout.strip(), str(self.root / ".deps/bin/criu"))
        self.assertIn("did not dump and restore a process", said.stderr)

    def test_if_no_trial_succeeds_setup_fails(self):
        said = self.installed([])
        self.assertEqual(said.returncode, 1)
        self.assertEqual(said.stdout.strip(), "nothing")
        self.assertEqual(said.stderr.count("did not dump and restore a process"), 2)
        self.assertIn("no CRIU here dumps and restores a process on this kernel", said.stderr)

    def test_without_a_second_criu_it_is_said_where_one_comes_from(self):
        for name in ("setup", "setup_criu.bash"):
            shutil.copy(ROOT / "scripts" / name, self.root / "scripts" / name)
        said = subprocess.run([self.root / "scripts/setup", "--criu-fallback"], capture_output=True, text=True, check=False)
        self.assertEqual((said.returncode, said.stdout), (1, ""))
        self.assertIn("there is no second, older CRIU that works here; scripts/setup takes one from suite trixie", said.stderr)
        self.assertEqual(said.stderr.count("\n"), 1)

    def test_the_pins_of_the_tree_are_whole(self):
        lines = [line.split() for line in (ROOT / "scripts/criu.pins").read_text().splitlines()]
        for line in lines:
            self.assertEqual(len(line), 5, line)
            self.assertRegex(line[4], "^[0-9a-f]{64}$")
        criu = {line[0]: line[2] for line in lines if line[1] == "criu"}
        self.assertEqual(sorted(criu), ["forky", "trixie"])


if __name__ == "__main__":
    unittest.main()
