"""Tests the parts of scripts/torture that look at CRIU, containerd and Docker (tests/torture), without these
programs."""

import io
import json
import pathlib
import platform
import sys
import tarfile
import tempfile
import types
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "torture"))

import borrowed  # noqa: E402
import containerd  # noqa: E402
import deeds  # noqa: E402
import docker  # noqa: E402
from checks import Checks  # noqa: E402
from kymod import Kymod  # noqa: E402
from seams import Seams  # noqa: E402

MAPS = """00400000-00500000 r-xp 00000000 00:01 7 /bin/cat
00500000-00600000 rw-p 00000000 00:00 0
00700000-00701000 r-xp 00000000 00:01 9 /memfd:CRIUMFD (deleted)
"""


class BorrowedTest(unittest.TestCase):
    def test_a_thread_in_code_of_criu_is_seen(self):
        for doing, foreign in (("running\n", True),
                               ("0 0x3 0x0 0x0 0x0 0x0 0x0 0x7ffd00 0x4100\n", False),
                               ("0 0x3 0x0 0x0 0x0 0x0 0x0 0x7ffd00 0x400100\n", False),
                               ("-1 0x7ffd00 0x400008\n", True),   # where CRIU writes a system call
                               ("-1 0x7ffd00 0x500008\n", False),  # this code is not executable
                               ("1 0x3 0x0 0x0 0x0 0x0 0x0 0x7ffd00 0x700800\n", True)):
            self.assertEqual(borrowed.in_foreign_code(doing, MAPS), foreign, doing)

    @unittest.skipIf(platform.machine() != "x86_64", "the numbers of system calls are of x86-64")
    def test_criu_that_waits_for_a_command_borrows_nothing(self):
        self.assertFalse(borrowed.in_foreign_code("45 0x3 0x0 0x0 0x0 0x0 0x0 0x7ffd00 0x700800\n", MAPS))

    def test_only_what_these_criu_trace_counts(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            thread = root / "12/task/12"
            thread.mkdir(parents=True)
            (root / "uptime").write_text("1 1\n")
            # The name of a process can have any bytes.
            (root / "12/status").write_bytes(b"Name:\tc\xff\nTracerPid:\t7\nUid:\t0\n")
            (root / "12/maps").write_text(MAPS)
            (thread / "syscall").write_text("running\n")
            self.assertTrue(borrowed.borrow_a_process([6, 7], root))
            self.assertFalse(borrowed.borrow_a_process([6], root))

    def test_stopped_is_told_from_running(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for pid, state in ((1, "T"), (2, "S")):
                (root / str(pid)).mkdir()
                (root / f"{pid}/stat").write_text(f"{pid} (a) b) {state} 1 1\n")
            self.assertTrue(borrowed.stand_still([1, 99], root))
            self.assertFalse(borrowed.stand_still([1, 2], root))


class DeedsTest(unittest.TestCase):
    def test_each_deed_that_can_be_chosen_is_there(self):
        seams = Seams(types.SimpleNamespace(world=types.SimpleNamespace(random=None)))
        plain, container = ([seams.method(deed) for deed in seams.of(types.SimpleNamespace(is_container=which))]
                            for which in (False, True))
        self.assertTrue(all(map(callable, container)))
        self.assertLess(len(plain), len(container))
        for kind in deeds.KINDS + deeds.OF_RUNTIMES:
            self.assertTrue(callable(getattr(deeds.Disturbance, "_" + kind.replace(" ", "_"))))

    def test_a_restore_is_seen_by_its_note(self):
        with tempfile.TemporaryDirectory() as folder:
            state = pathlib.Path(folder) / "state"
            kymod = Kymod(pathlib.Path("build"), "first", state, [], {})
            self.assertFalse(kymod.restores())
            (state / "restoring").mkdir(parents=True)
            self.assertFalse(kymod.restores())
            (state / "restoring/note").touch()
            self.assertTrue(kymod.restores())

    def test_the_counts_are_shown_for_each_kind(self):
        checks = Checks(None, [])
        checks.subjects = [types.SimpleNamespace(kind=kind) for kind in ("process", "process", "runc")]
        for subject in checks.subjects:
            checks.count("dumps", subject)
        checks.count("restores", checks.subjects[0], 0)
        self.assertEqual([line.split() for line in checks.table()],
                         [["all", "process", "runc"], ["dumps", "3", "2", "1"]])


class ImageTest(unittest.TestCase):
    @unittest.skipIf(not containerd.shutil.which("busybox"), "busybox is not installed")
    def test_its_manifest_names_what_is_in_it(self):
        with tarfile.open(fileobj=io.BytesIO(containerd.image())) as tar:
            files = {member.name: tar.extractfile(member).read() for member in tar if member.isfile()}
        listed, = json.loads(files["index.json"])["manifests"]
        self.assertEqual(listed["annotations"]["io.containerd.image.name"], containerd.IMAGE)
        manifest = json.loads(files["blobs/sha256/" + listed["digest"].removeprefix("sha256:")])
        for blob in (manifest["config"], *manifest["layers"]):
            self.assertEqual(len(files["blobs/sha256/" + blob["digest"].removeprefix("sha256:")]), blob["size"])


class RootTest(unittest.TestCase):
    def test_the_files_of_a_container_are_found_for_each_driver(self):
        with tempfile.TemporaryDirectory() as folder:
            data = pathlib.Path(folder)
            mount = data / "image/vfs/layerdb/mounts/7f"
            mount.mkdir(parents=True)
            (mount / "mount-id").write_text("c0ffee")
            self.assertEqual(docker.root_in(data, {"Driver": "vfs", "Id": "7f"}), data / "vfs/dir/c0ffee")
            layer = {"Driver": "overlay2", "Id": "7f", "GraphDriver": {"Data": {"UpperDir": "/layers/9/diff"}}}
            self.assertEqual(docker.root_in(data, layer), pathlib.Path("/layers/9/diff"))


if __name__ == "__main__":
    unittest.main()
