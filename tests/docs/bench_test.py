"""scripts/bench: if a program fails or produces wrong data, the run fails and names it, but the other programs are
still measured."""

import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

import figures  # noqa: E402  (they lie in bench/)
import parts  # noqa: E402
import run  # noqa: E402
import steps  # noqa: E402
from figures import Figure, Goal  # noqa: E402


def google_program(runs):
    return f"#!/bin/sh\ncat <<'JSON'\n{json.dumps({'benchmarks': runs})}\nJSON\n"


def repetition(name, index, **more):
    return {"name": f"{name}/real_time", "run_type": "iteration", "repetition_index": index, "real_time": 2.0 + index, "time_unit": "ns",
            **more}


class BenchTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.context = steps.Context(True, self.folder, self.folder, "criu", "", self.folder, self.folder, self.folder / "log")
        self.context.log.write_text("")

    def program(self, name, text):
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    def run_parts(self, **made):
        """Runs these functions as the parts of scripts/bench."""
        replaced = {name: parts.Part(name, name, "", function, [Figure("a", "a", "ns")]) for name, function in made.items()}
        older = dict(run.PARTS)
        run.PARTS.clear()
        run.PARTS.update(replaced)
        self.addCleanup(lambda: (run.PARTS.clear(), run.PARTS.update(older)))
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            results, faults = run.run_parts(list(replaced), self.context, ["scripts/bench"])
        return results, faults, out.getvalue()

    def test_a_failed_check_of_google_benchmark_is_a_fault_though_it_ends_with_0(self):
        self.program("bench_sum", google_program([repetition("adds", 0, error_occurred=True, error_message="the sum is wrong")]))
        results, faults, _ = self.run_parts(sum=lambda context: steps.google(context, "sum"), good=lambda _: {"a": [1, 2]})
        self.assertEqual(faults, ["sum: bench_sum, adds/real_time: the sum is wrong"])
        self.assertEqual(list(results), ["good"], "the others are measured all the same")

    def test_a_wrong_file_of_the_recorder_is_a_fault_by_its_name(self):
        self.program("bench_recorder", "#!/bin/sh\necho '{\"fault\": \"9 rows in the file, 10 reported\"}'\nexit 1\n")
        _, faults, out = self.run_parts(recorder=lambda context: steps.recorder(context, "megahertz", [], 1, 1))
        self.assertEqual(faults, ["recorder: bench_recorder (megahertz) ended with 1: 9 rows in the file, 10 reported"])
        self.assertIn("FAILED", out)

    def test_a_program_that_fails_is_named_with_its_last_line(self):
        self.program("bench_sum", "#!/bin/sh\necho first >&2\necho 'no room for the file' >&2\nexit 3\n")
        _, faults, _ = self.run_parts(sum=lambda context: steps.google(context, "sum"))
        self.assertEqual(faults, ["sum: bench_sum ended with 3: no room for the file"])

    def test_repetitions_are_taken_in_order_and_aggregates_left_out(self):
        self.program("bench_sum", google_program([repetition("adds", 1), repetition("adds", 0), {**repetition("adds", 0),
                     "run_type": "aggregate"}, repetition("text", 0, bytes_per_second=7.0)]))
        self.assertEqual(steps.google(self.context, "sum"), {"adds": [2.0, 3.0], "text": [7.0]})

    def test_a_part_that_does_not_exist_is_wrong_usage(self):
        said = io.StringIO()
        with contextlib.redirect_stderr(said), self.assertRaises(SystemExit) as ended:
            run.main(["counters"])
        self.assertEqual(ended.exception.code, 2)
        self.assertIn("no part 'counters': there are counter, ", said.getvalue())

    def test_figures_of_two_machines_are_not_mixed(self):
        path = self.folder / "results.json"
        path.write_text(json.dumps({"machine": {"cpu": "another"}, "parts": {"text": {}}}))
        with self.assertRaisesRegex(SystemExit, "figures of another machine"):
            run.refuse_mixture(path, ["counter"])
        run.refuse_mixture(path, list(run.PARTS))
        run.refuse_mixture(path, ["text"])


class FiguresTest(unittest.TestCase):
    def measured(self, goal, values=(10.0, 11.0, 12.0), rival=(5.0, 5.0, 5.0)):
        made = [Figure("rival", "rival", "ns"), Figure("ours", "ours", "ns", "rival", goal)]
        return figures.measure(made, {"rival": list(rival), "ours": list(values)})["ours"]

    def test_a_ratio_is_the_median_of_the_pairs_and_not_of_the_medians(self):
        entry = self.measured(None, (1.0, 100.0, 9.0), (1.0, 10.0, 3.0))
        self.assertEqual(entry["beside"]["median"], 3.0)

    def test_pairs_that_lack_a_partner_are_refused(self):
        with self.assertRaises(ValueError):
            self.measured(None, (1.0, 2.0))

    def test_a_goal_is_met_or_not_by_the_median_and_says_where_the_interval_has_both(self):
        for goal, met, certain in ((Goal(at_most=13), True, True), (Goal(at_most=11), True, False), (Goal(at_most=9), False, True),
                                   (Goal(at_least=11.5), False, False), (Goal("ratio", at_most=2.5), True, True),
                                   (Goal("ratio", at_least=2.5), False, True)):
            with self.subTest(goal):
                entry = self.measured(goal)["goal"]
                self.assertEqual((entry["met"], entry["certain"]), (met, certain))

    def test_values_are_told_with_their_units(self):
        for value, unit, told in ((1.62, "ns", "1.62 ns"), (405_700_000, "ns", "406 ms"), (2.6e9, "bytes/s", "2.60 GB/s"),
                                  (0.029, "cores", "0.029 cores"), (0.9995, "share", "99.95 %"), (97e6, "bytes", "97.0 MB"), (0, "ns", "0 ns")):
            self.assertEqual(figures.tell(value, unit), told)
        self.assertEqual(figures.tell_ratio(1.052, True), "+5.2 %")
        self.assertEqual(figures.tell_ratio(0.25, False), "0.25 times")

    def test_every_figure_of_a_part_has_its_rival_in_the_same_part_and_a_known_unit(self):
        for part in parts.PARTS.values():
            names = [figure.name for figure in part.figures]
            self.assertEqual(len(names), len(set(names)), part.name)
            for figure in part.figures:
                self.assertIn(figure.unit, figures.UNITS)
                if figure.beside:
                    self.assertIn(figure.beside, names, f"{part.name}: {figure.name}")


if __name__ == "__main__":
    unittest.main()
