"""A histogram must arrive in Prometheus as a histogram, both scraped and exported: the same families, and the same
quantiles in a real Prometheus. The test computes the expected quantiles from the columns of the recording."""

import collections
import http.server
import json
import os
import pathlib
import re
import subprocess
import threading
import time
import unittest
import urllib.parse
import urllib.request

from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from exporting import ExportTest, read_recording

WATCHDOG = 60  # seconds; only ends a test that hangs


def quantile(buckets, rank):
    """Computes what Prometheus' manual says of histogram_quantile. `buckets` are pairs: upper bound, number of values
    up to it."""
    wanted = rank * buckets[-1][1]
    for i, (bound, count) in enumerate(buckets):
        if count >= wanted:
            low, below = buckets[i - 1] if i else (0, 0)
            return low if bound == float("inf") else low + (bound - low) * (wanted - below) / (count - below)
    raise AssertionError("the last bucket holds all")


class Prometheus:
    """A real Prometheus with its data in `folder`. It scrapes `target` (host:port) if there is one."""

    def __init__(self, folder, target=None):
        config = pathlib.Path(str(folder) + ".yml")
        jobs = [{"job_name": "test", "scrape_interval": "2s", "scrape_timeout": "2s",
                 "static_configs": [{"targets": [target]}]}] if target else []
        config.write_text(json.dumps({"scrape_configs": jobs}))
        self.process = subprocess.Popen(
            ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder}", "--storage.tsdb.retention.time=50y",
             "--web.listen-address=127.0.0.1:0"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.address = f"http://{self.wait_for_listener()}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def wait_for_listener(self):
        """The port that Prometheus chose for port 0. Some versions do not print it."""
        until = time.monotonic() + WATCHDOG
        while time.monotonic() < until:
            listening = subprocess.run(["ss", "-Hltnp"], capture_output=True, text=True, check=True).stdout
            for line in listening.splitlines():
                if f"pid={self.process.pid}," in line:
                    return line.split()[3]
            time.sleep(0.05)
        raise AssertionError("Prometheus does not listen")

    def ask(self, query, at=None):
        """The value of a query, or None if there is none."""
        words = {"query": query, **({} if at is None else {"time": at})}
        with urllib.request.urlopen(f"{self.address}/api/v1/query?{urllib.parse.urlencode(words)}", timeout=WATCHDOG) as answer:
            result = json.load(answer)["data"]["result"]
        return float(result[0]["value"][1]) if result else None

    def wait_for(self, query, at=None):
        until = time.monotonic() + WATCHDOG
        while time.monotonic() < until:
            try:
                value = self.ask(query, at)
                if value is not None:
                    return value
            except OSError:
                pass  # Prometheus is still starting
            time.sleep(0.05)
        raise AssertionError(f"Prometheus has no answer to {query}")


class HistogramTest(ExportTest):
    def setUp(self):
        super().setUp()
        self.recording = self.folder / "run.tsv"
        self.served = self.folder / "metrics.txt"
        subprocess.run([os.environ["HISTOGRAM_PROGRAM"], str(self.recording), str(self.served)], check=True, timeout=60)
        self.exported = self.export(self.recording, "run.om")

    def last_row(self):
        names, rows = read_recording(self.recording)
        return dict(zip(names, rows[-1])), rows[-1][0]

    def buckets(self, metric, unit):
        """The bounds in base units, and the numbers of values up to them, from the last row of the recording."""
        row, _ = self.last_row()
        found, count = [], 0
        for name, value in row.items():
            if match := re.fullmatch(re.escape(metric) + r"\[\d+-(\w+)\]", name):
                count += value
                found.append((float(match[1]) * unit if match[1] != "inf" else float("inf"), count))
        return found

    def test_the_export_has_the_families_that_metrics_serves(self):
        def by_name(families):
            return {family.name + ("_total" if family.type == "counter" else ""): family
                    for family in families if "profiler" not in family.name}

        exported = by_name(parse_openmetrics(self.newest(self.exported)))
        served = by_name(parse_text(self.served.read_text()))
        types = {name: family.type for name, family in exported.items()}
        # In OpenMetrics, the family of a counter has no _total: a gauge and a histogram have these names.
        for name in ("shop_queued_total", "shop_wait_seconds_total"):
            self.assertEqual(types[name], "unknown")
            types[name] = "counter"
        self.assertEqual(types, {name: family.type for name, family in served.items()})
        self.assertNotIn("name", self.said)
        self.assertEqual(exported["shop_wait_seconds"].type, "histogram")
        self.assertEqual(exported["shop_requests_total"].type, "counter", "not shop_requests_total_total")
        last = {}
        for family in exported.values():
            for sample in family.samples:
                labels = tuple((name, float(value) if name == "le" else value) for name, value in sample.labels.items())
                last[sample.name, labels] = sample.value
        for family in served.values():
            for sample in family.samples:
                labels = tuple((name, float(value) if name == "le" else value) for name, value in sample.labels.items())
                self.assertAlmostEqual(last.pop((sample.name, labels)), sample.value, places=9, msg=sample)
        self.assertEqual(last, {})

    def test_the_export_has_the_same_text_for_each_series(self):
        def series(text):
            found = {line.split()[0] for line in text.splitlines() if not line.startswith("#") and "profiler" not in line}
            return {re.sub(r'(le="\d+)\.0"', r'\1"', name) for name in found}  # OpenMetrics requires 64.0 in place of 64

        self.assertEqual(series(self.exported.read_text()), series(self.served.read_text()))

    def test_promtool_finds_nothing_wrong(self):
        for text in (self.served.read_text(), self.in_text_format(self.newest(self.exported))):
            checked = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True,
                                     check=False, timeout=30)
            self.assertEqual((checked.returncode, checked.stdout + checked.stderr), (0, ""))

    def newest(self, exported):
        """The last sample of each series in the export. The parser, like `promtool check`, expects a single scrape: it
        drops buckets of a histogram that is exported at several times."""
        lines, seen = [], set()
        for line in reversed(exported.read_text().splitlines()):
            series = line.rsplit(" ", 2)[0]
            if line.startswith("#") or series not in seen:
                seen.add(series)
                lines.append(line)
        return "\n".join(reversed(lines)) + "\n"

    def in_text_format(self, text):
        """Changes the text format to OpenMetrics: there, the family of a counter has no _total. The text format has no
        times and no units."""
        text = re.sub(r"(?m)^# (TYPE|HELP) (\w+)", lambda m: f"# {m[1]} {self.text_name(m[2])}", text)
        text = re.sub(r"(?m)^# (UNIT .*|EOF)\n", "", text).replace(" unknown\n", " untyped\n")
        return re.sub(r"(?m)^([^#].*) [\d.]+$", r"\1", text)

    def text_name(self, family):
        return family + "_total" if f"# TYPE {family} counter" in self.exported.read_text() else family

    def test_histogram_quantile_of_the_export_in_a_real_prometheus(self):
        base = self.folder / "tsdb"
        subprocess.run(["promtool", "tsdb", "create-blocks-from", "openmetrics", str(self.exported), str(base)],
                       check=True, capture_output=True, timeout=60)
        row, end_ns = self.last_row()
        start_ns = json.loads(self.recording.with_suffix(".meta.json").read_text())["start_unix_ns"]
        at = (start_ns + end_ns) / 1e9 + 0.002
        with Prometheus(base) as prometheus:
            for rank in (0.5, 0.9, 0.99):
                for metric, family, unit in (("wait_us", "shop_wait_seconds", 1e-6), ("batch_size", "shop_batch_size", 1)):
                    answer = prometheus.wait_for(f"histogram_quantile({rank}, {family}_bucket)", at)
                    self.assertAlmostEqual(answer, quantile(self.buckets(metric, unit), rank), places=9)
            self.assertEqual(prometheus.ask("shop_wait_seconds_count", at), row["wait_us_count"])
            self.assertAlmostEqual(prometheus.ask("shop_wait_seconds_sum", at), row["wait_us_sum"] / 1e6)
            self.assertIsNone(prometheus.ask("shop_wait_us_total", at))

    def test_histogram_quantile_of_what_is_scraped_is_the_same(self):
        text = self.served.read_bytes()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        with Prometheus(self.folder / "scraped", f"127.0.0.1:{server.server_address[1]}") as prometheus:
            answer = prometheus.wait_for("histogram_quantile(0.9, shop_wait_seconds_bucket)")
            self.assertAlmostEqual(answer, quantile(self.buckets("wait_us", 1e-6), 0.9), places=9)

    def test_without_metadata_it_is_a_histogram_all_the_same(self):
        self.recording.with_suffix(".meta.json").unlink()
        families = {family.name: family.type for family in parse_openmetrics(
            self.newest(self.export(self.recording, "bare.om")))}
        self.assertEqual(families["kymo_wait_seconds"], "histogram")
        self.assertEqual(families["kymo_batch_size"], "histogram")

    def test_the_prefix_is_the_users(self):
        text = self.export(self.recording, "own.om", "--metric-prefix", "mine_").read_text()
        names = collections.Counter(line.split()[2].split("_")[0] for line in text.splitlines() if line.startswith("# TYPE"))
        self.assertEqual(set(names), {"mine"})
        self.assertIn("# TYPE wait_seconds histogram", self.export(self.recording, "none.om", "--metric-prefix", "").read_text())


if __name__ == "__main__":
    unittest.main(verbosity=2)
