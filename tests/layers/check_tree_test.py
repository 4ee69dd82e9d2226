"""Breaks each rule of check_tree.py once, in a temporary tree, and expects a report."""

import os
import pathlib
import tempfile
import unittest

import check_tree


class CheckTreeTest(unittest.TestCase):
    def setUp(self):
        self._scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self._scratch.cleanup)
        self.root = pathlib.Path(self._scratch.name)

    def faults_of(self, name, text, compiler=None):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return check_tree.check_tree(self.root, compiler)

    def expect_fault(self, name, text, words, compiler=None):
        faults = self.faults_of(name, text, compiler)
        self.assertEqual(len(faults), 1, faults)
        self.assertIn(words, faults[0])

    def test_a_clean_tree_has_no_fault(self):
        self.open_door("lens", "report/text.h")
        self.assertEqual(self.faults_of("src/daemon/web/a.cc", '#include "lens/report/text.h"\n#include <vector>\n'), [])
        self.assertEqual(self.faults_of("src/checkpoint/criu/drive/a.cc",
                                        '#include "kymo/result.h"\n#include "checkpoint/criu/images/needs.h"\n'), [])
        self.assertEqual(self.faults_of("include/kymo/sink.h", '#pragma once\n#include "kymo/metric.h"\n'), [])

    def open_door(self, wing, *headers):
        door = self.root / f"src/{wing}/door.txt"
        door.parent.mkdir(parents=True, exist_ok=True)
        door.write_text("\n".join(headers) + "\n")

    def test_includes_from_a_floor_above(self):
        self.expect_fault("src/recorder/metrics/a.cc", '#include "recorder/sampling/ring/ring.h"\n',
                          "must not include recorder/sampling/ring/ring.h")

    def test_includes_from_a_floor_above_inside_its_folder(self):
        self.expect_fault("src/recorder/sampling/ring/a.cc", '#include "recorder/sampling/collect/pacer.h"\n',
                          "recorder/sampling/ring (floor 2.3.1) must not include recorder/sampling/collect/pacer.h")
        self.assertEqual(self.faults_of("src/recorder/sampling/ring/a.cc", '#include "kymo/sink.h"\n'), [])

    def test_includes_from_beside(self):
        self.expect_fault("src/checkpoint/inside/a.cc", '#include "checkpoint/preflight/preflight.h"\n',
                          "must not include checkpoint/preflight/preflight.h")

    def test_includes_past_the_door_of_a_wing(self):
        self.open_door("recorder", "metrics/unit_names.h")
        self.assertEqual(self.faults_of("src/lens/report/a.cc", '#include "recorder/metrics/unit_names.h"\n'), [])
        self.expect_fault("tools/kymo/a.cc", '#include "recorder/metrics/cells.h"\n',
                          "must not include recorder/metrics/cells.h, which is not in src/recorder/door.txt")
        (self.root / "tools/kymo/a.cc").unlink()
        self.open_door("recorder", "metrics/unit_names.h", "metrics/cells.h")
        self.expect_fault("src/lens/report/b.cc", '#include "recorder/metrics/unit_names.h"\n',
                          "no other wing includes recorder/metrics/cells.h")

    def test_a_runtime_includes_another(self):
        runtimes = "src/checkpoint/runtimes"
        self.expect_fault(f"{runtimes}/podman/a.cc", '#include "checkpoint/runtimes/runc/bundle.h"\n',
                          "must not include checkpoint/runtimes/runc/bundle.h, which is another runtime's")
        for above in ("table.h", "shared/runtime.h"):
            self.assertEqual(self.faults_of(f"{runtimes}/podman/a.cc", f'#include "checkpoint/runtimes/{above}"\n'), [])
        (self.root / f"{runtimes}/podman/a.cc").unlink()
        self.assertEqual(self.faults_of(f"{runtimes}/table.cc", '#include "checkpoint/runtimes/runc/bundle.h"\n'), [])

    def test_includes_from_above_behind_spaces_and_brackets(self):
        self.expect_fault("src/base/a.cc", "  #  include <daemon/config/config.h>\n",
                          "must not include daemon/config/config.h")

    def test_includes_a_public_header_from_above(self):
        self.expect_fault("src/recorder/metrics/a.h", '#include "kymo/profiler.h"\n', "must not include kymo/profiler.h")

    def test_includes_the_api_from_below(self):
        self.expect_fault("src/recorder/metrics/a.h", '#include "kymo/v1/kymo.pb.h"\n', "must not include kymo/v1")

    def test_includes_without_a_folder(self):
        self.expect_fault("src/base/a.cc", '#include "clock.h"\n', "names no folder")

    def test_the_table_of_the_document_has_every_folder_from_top_to_bottom(self):
        source = check_tree.ROOT / "src"
        folders = {path.parent.relative_to(source).as_posix() for path in source.rglob("*.h")}
        self.assertEqual({folder for folder in folders if check_tree.folder_of(folder + "/a.h") is None}, set())
        for folder in check_tree.FLOORS:
            self.assertTrue((source / folder).is_dir(), folder)
        floors = list(check_tree.FLOORS.values())
        self.assertEqual(floors, sorted(floors, reverse=True))

    def test_a_folder_without_a_floor(self):
        self.expect_fault("src/utils/a.h", "", "stands on no floor")

    def test_a_public_header_without_a_folder(self):
        self.expect_fault("include/kymo/extra.h", "#pragma once\n", "gives no folder")

    def test_a_public_header_includes_third_party(self):
        self.expect_fault("include/kymo/registry.h", "#pragma once\n#include <boost/version.hpp>\n", "boost")

    def test_a_public_header_includes_a_system_header(self):
        self.expect_fault("include/kymo/registry.h", "#pragma once\n#include <unistd.h>\n", "unistd.h")

    def test_an_example_looks_inside(self):
        self.expect_fault("examples/a/a.cc", '#include "recorder/sampling/ring/ring.h"\n', "public headers alone")

    def test_an_atomic_operation_without_a_memory_order(self):
        for line in ("int a = x.load();", "x->store(f(1), 2);", "x.fetch_add(1);", "x.exchange(\n    f());",
                     "while (!x.compare_exchange_weak(old, next)) {}", "list[i].load( );"):
            self.expect_fault("src/base/a.cc", "\n" + line + "\n", "src/base/a.cc:2: ")
        self.expect_fault("src/base/a.cc", "x.load();\n", "load() names no memory order")

    def test_an_operator_of_an_atomic(self):
        declared = "std::atomic<std::uint64_t> x_{0};\n"
        for line in ("++x_;", "--run->x_;", "x_++;", "x_ = 1;", "x_ |= 1;", "return x_;", "if (!x_) return;"):
            self.expect_fault("src/base/a.cc", declared + line + "\n", "src/base/a.cc:2: x_ is used without")
        self.assertEqual(self.faults_of("src/base/a.cc", declared + "y_ = x_.load(std::memory_order_relaxed);\n"), [])
        self.assertEqual(self.faults_of("src/base/a.h", declared), [])
        self.expect_fault("src/base/a.cc", "++x_;\n", "x_ is used without")  # x_ is declared in the header

    def test_an_atomic_operation_with_a_memory_order(self):
        for line in ("x.store(f(1),\n  std::memory_order_release);", "x.load(std::memory_order_relaxed);",
                     "chunk.load(index);", "this->store();", "std::exchange(a, b);"):
            self.assertEqual(self.faults_of("tools/kymo/a.cc", line + "\n"), [])
        self.assertEqual(self.faults_of("tests/base/a.cc", "x.load();\n"), [])

    def test_a_file_too_long(self):
        self.expect_fault("src/base/a.cc", "\n" * 601, "601 lines")

    def test_a_registry_host(self):
        self.expect_fault("docs/a.md", f"see {check_tree.FORBIDDEN[0]}\n", "registry's host")

    def test_a_private_path(self):
        self.expect_fault("scripts/a", f"cd {check_tree.FORBIDDEN[-1]}/x\n", "private path")

    def test_a_header_that_does_not_stand_alone(self):
        self.expect_fault("include/kymo/counter.h", "#pragma once\ninline std::size_t n = 0;\n",
                          "does not compile alone", os.environ.get("CXX", "c++"))

    def test_a_header_without_a_guard(self):
        self.expect_fault("include/kymo/counter.h", "struct Twice {};\n", "does not compile alone",
                          os.environ.get("CXX", "c++"))


if __name__ == "__main__":
    unittest.main()
