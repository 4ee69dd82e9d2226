"""Measures the figures about speed and cost in docs/performance.md and the README, each next to its rivals in the same run,
and checks the data. Use a machine that does nothing else. The load and the steal time during each part are recorded.

  scripts/bench                 measures every part (about half an hour), and writes bench/results/published.json and the
                                figures in docs/performance.md and the README
  scripts/bench PART...         measures only these parts; the others keep their figures
  scripts/bench --quick         tries every step with as little work as possible; writes only build/bench-quick.json
  scripts/bench --demo          runs scripts/demo, and keeps its output and a picture of its page for the README
  scripts/bench --documents     measures nothing; writes the documents again from the stored figures

Exits with 1 if a program failed or its data was wrong. It names the part, and keeps the older figures of this part.
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time

import documents
import figures
import steps
from parts import PARTS

ROOT = steps.ROOT
PUBLISHED = ROOT / "bench/results/published.json"
QUICK = ROOT / "build/bench-quick.json"
QUIET_CORES, QUIET_STEAL = 0.2, 0.05  # the largest load by others with which a part counts as measured on a quiet machine


def say(text):
    print(text, flush=True)


# --- the machine ---------------------------------------------------------------------------------

def machine():
    cpu = next((line.split(":", 1)[1].strip() for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
                if line.startswith("model name")), platform.machine())
    compiler = subprocess.run(["c++", "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {"cpu": cpu, "cores": os.cpu_count(), "memory_gib": round(memory / 2**30), "kernel": platform.release(),
            "compiler": compiler}


class Load:
    """The share of the machine that was used by others than this program and its children, from its start to `seen`."""

    def __init__(self):
        self.average = os.getloadavg()[0]
        self.began, self.machine, self.own = time.monotonic(), self.times(), self.own_seconds()

    @staticmethod
    def times():
        ticks = list(map(int, pathlib.Path("/proc/stat").read_text().splitlines()[0].split()[1:9]))
        user, nice, system, _, _, irq, softirq, steal = (value / os.sysconf("SC_CLK_TCK") for value in ticks)
        return user + nice + system + irq + softirq, steal

    @staticmethod
    def own_seconds():
        return sum(usage.ru_utime + usage.ru_stime for usage in map(resource.getrusage,
                   (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))

    def seen(self):
        seconds = time.monotonic() - self.began
        busy, steal = (now - before for now, before in zip(self.times(), self.machine))
        others = max(0.0, busy - (self.own_seconds() - self.own)) / seconds
        stolen = steal / seconds / os.cpu_count()
        return {"average_before": round(self.average, 2), "others_cores": round(others, 2), "steal": round(stolen, 4),
                "quiet": others <= QUIET_CORES and stolen <= QUIET_STEAL}


def commit():
    command = ["git", "-C", ROOT, "describe", "--always", "--dirty", "--exclude=*"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


# --- what is needed ------------------------------------------------------------------------------

TARGETS = {"bench": ["kymo_benchmarks"], "release": ["kymod", "kymo_cli", "kymo-churn", "publisher", "kymo-profiled-functions", "kymo-test-moody-fs"]}


def build(preset, log):
    say(f"== build, preset {preset}")
    if shutil.which("ccache"):
        os.environ.setdefault("CMAKE_CXX_COMPILER_LAUNCHER", "ccache")
    with log.open("a") as out:
        for command in (["cmake", "--preset", preset], ["cmake", "--build", "--preset", preset, "-j", str(os.cpu_count()), "--target", *TARGETS[preset]]):
            if subprocess.run(command, cwd=ROOT, stdout=out, stderr=out, check=False).returncode != 0:
                sys.exit(f"bench: preset {preset} does not build: see {log}")


def prepare(chosen, log):
    """Installs the packages, builds the programs and DuckDB. Returns the criu to use."""
    subprocess.run([ROOT / "scripts/setup"], check=True)
    for preset in sorted({preset for name in chosen for preset in PARTS[name].builds}):
        build(preset, log)
    if {"reading", "report"} & set(chosen):
        subprocess.run([ROOT / "tests/support/npm_install", ROOT / "bench/duckdb", ROOT / "build/bench-duckdb"], check=True)
    if {"page", "live"} & set(chosen):
        subprocess.run([ROOT / "tests/support/npm_install", ROOT / "tests/lens/pages", ROOT / "build/bench-web"], check=True)


def find_criu():
    return subprocess.run([ROOT / "scripts/setup", "--criu"], capture_output=True, text=True, check=True).stdout.strip()


# --- the demo ------------------------------------------------------------------------------------

def keep_demo():
    """Runs scripts/demo, shows and keeps its output, and takes a picture of the page that it made."""
    began = datetime.datetime.now(datetime.timezone.utc)
    demo = subprocess.Popen([ROOT / "scripts/demo"], stdout=subprocess.PIPE, text=True)
    lines = []
    for line in demo.stdout:
        print(line, end="", flush=True)
        lines.append(line)
    if demo.wait() != 0:
        sys.exit(f"bench: scripts/demo ended with {demo.returncode}")
    headline = f"`scripts/demo` at commit `{commit()}`, {began:%F}, {os.cpu_count()} cores\n"
    (ROOT / documents.DEMO).write_text(headline + "".join(lines).replace(f"{ROOT}/", ""))
    subprocess.run([ROOT / "tests/support/npm_install", ROOT / "tests/lens/pages", ROOT / "build/bench-web"], check=True)
    subprocess.run(["node", ROOT / "bench/page_picture.js", ROOT / "out/demo/pages-dump.html", ROOT / "docs/images/page.png"], check=True,
                   env={**os.environ, "KYMO_BROWSER": str(ROOT / "build/bench-web/browser.js"),
                        "NODE_PATH": str(ROOT / "build/bench-web/node_modules")})


# --- the run -------------------------------------------------------------------------------------

def run_part(part, context, argv):
    """The entry of the result file for this part."""
    load, began = Load(), time.monotonic()
    measured = figures.measure(part.figures, part.run(context))
    seen = load.seen()
    return {"date": f"{datetime.datetime.now(datetime.timezone.utc):%F %H:%M} UTC", "commit": commit(), "command": " ".join(argv),
            "seconds": round(time.monotonic() - began, 1), "load": seen, "figures": measured}


def show(name, result):
    load = result["load"]
    say(f"   {result['seconds']:.0f} s; load average before {load['average_before']}, others took {load['others_cores']} cores, "
        f"steal {100 * load['steal']:.1f} %{'' if load['quiet'] else ': NOT QUIET'}")
    for entry in result["figures"].values():
        beside = f"; {figures.tell_ratios(entry['beside'])} beside {result['figures'][entry['beside']['name']]['text']}" \
            if "beside" in entry else ""
        goal = f"; goal {figures.tell_goal(entry)}: {figures.tell_met(entry['goal'])}" if "goal" in entry else ""
        say(f"   {entry['text']}: {figures.tell_all(entry, entry['unit'])}{beside}{goal}")


def run_parts(chosen, context, argv):
    """Returns (results by part, faults). If a part fails, the others still run."""
    results, faults = {}, []
    for name in chosen:
        say(f"\n== {name}: {PARTS[name].title}")
        try:
            results[name] = run_part(PARTS[name], context, argv)
            show(name, results[name])
        except steps.BenchError as error:
            faults.append(f"{name}: {error}")
            say(f"   FAILED: {error}")
    return results, faults


def write(path, results):
    """Adds the results to those in the file, in the order of the parts. All are from the same machine."""
    older = json.loads(path.read_text())["parts"] if path.exists() else {}
    all_parts = {**older, **results}
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"format_version": 1, "machine": machine(),
                       "parts": {name: all_parts[name] for name in PARTS if name in all_parts}}, indent=1, ensure_ascii=False)
    path.write_text(text + "\n")


def refuse_mixture(path, chosen):
    """Refuses to mix figures of two machines in one table."""
    if path.exists() and set(chosen) != set(PARTS):
        older = json.loads(path.read_text())
        if older["machine"] != machine() and set(older["parts"]) - set(chosen):
            sys.exit(f"bench: {path} has figures of another machine: measure every part, or write to another file (--output)")


def parse(argv):
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--quick", action="store_true", help="try every step with little work; do not use the figures")
    parser.add_argument("--demo", action="store_true", help="run scripts/demo, and keep its output for the README")
    parser.add_argument("--documents", action="store_true", help="write the documents again from the stored figures")
    parser.add_argument("--output", type=pathlib.Path, help="write the results to this file, and do not change the documents")
    parser.add_argument("--no-build", action="store_true", help="do not build; use the programs as they are")
    parser.add_argument("--release", type=pathlib.Path, default=ROOT / "build/release", help="build folder of kymod (default build/release)")
    options = parser.parse_args(argv)
    unknown = [name for name in options.parts if name not in PARTS]
    if unknown:
        parser.error(f"no part '{unknown[0]}': there are {', '.join(PARTS)}")
    if options.release != ROOT / "build/release" and not (options.output or options.quick):
        parser.error("--release: give --output FILE, too: only the results of build/release may go into the published file")
    return options


def main(argv):
    options = parse(argv)
    if options.demo:
        keep_demo()
    if options.documents or options.demo:
        return documents.write_all(ROOT)
    chosen = [name for name in PARTS if name in options.parts or not options.parts]
    path = options.output or (QUICK if options.quick else PUBLISHED)
    refuse_mixture(path, chosen)
    logs = ROOT / "build/bench-logs"
    logs.mkdir(parents=True, exist_ok=True)
    if not options.no_build:
        prepare(chosen, logs / "build.log")
    log = logs / "run.log"
    log.write_text("")
    say(f"{machine()}; load average {os.getloadavg()[0]:.2f}")
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="out-bench.", dir=ROOT) as disk, \
            tempfile.TemporaryDirectory(prefix="kymo-bench.", dir="/dev/shm") as memory:
        context = steps.Context(options.quick, ROOT / "build/bench/bench", options.release.resolve(), find_criu(),
                                str(ROOT / "build/bench-duckdb"), pathlib.Path(disk), pathlib.Path(memory), log)
        results, faults = run_parts(chosen, context, ["scripts/bench", *argv])
    write(path, results)
    say(f"\n== {path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}, after {time.monotonic() - began:.0f} s")
    if path == PUBLISHED:
        documents.write_all(ROOT)
    for fault in faults:
        print(f"bench: {fault}; see the output of the programs in {log}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
