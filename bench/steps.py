"""How the parts of `scripts/bench` run their programs. A check or a program that fails raises a BenchError."""

import contextlib
import dataclasses
import json
import os
import pathlib
import shutil
import signal
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
HANG_SECONDS = 900


class BenchError(Exception):
    """A program failed, or its result is wrong. The message is one line that names it."""


@dataclasses.dataclass
class Context:
    """Where the files are. `quick` makes each step as short as possible: its figures mean nothing."""
    quick: bool
    programs: pathlib.Path  # the folder with the programs bench_...
    build: pathlib.Path     # the release build
    criu: str
    duckdb: str             # the folder with @duckdb/node-api
    disk: pathlib.Path      # an empty folder on a disk
    memory: pathlib.Path    # an empty folder on a tmpfs
    log: pathlib.Path       # the stderr of all programs

    def environment(self):
        return {**os.environ, "LC_ALL": "C.UTF-8", "KYMO_BENCH_PROGRAMS": str(self.programs), "KYMO_BENCH_BUILD": str(self.build),
                "KYMO_BENCH_CRIU": self.criu, "PYTHONDONTWRITEBYTECODE": "1"}


def output_of(context, command, name):
    """Runs a program and returns its stdout. Raises BenchError if it fails or hangs. It is ended with its process
    group, so that nothing is left."""
    with context.log.open("a") as log:
        print(f"$ {' '.join(map(str, command))}", file=log, flush=True)
        try:
            child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, cwd=context.disk,
                                     env=context.environment(), start_new_session=True)
        except OSError as error:
            raise BenchError(f"cannot start {name}: {error}") from error
        try:
            out, _ = child.communicate(timeout=HANG_SECONDS)
        except BaseException as error:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGTERM)  # those that have started a daemon then stop it
            child.wait(30)
            if isinstance(error, subprocess.TimeoutExpired):
                raise BenchError(f"{name} still ran after {HANG_SECONDS} s") from error
            raise
    if child.returncode != 0:
        raise BenchError(f"{name} ended with {child.returncode}: {reason_of(out, context.log)}")
    return out


def reason_of(out, log):
    """The reason that a failed program gave: the field `fault` of its JSON, or its last line on stderr."""
    with contextlib.suppress(ValueError, IndexError, TypeError, KeyError):
        return json.loads(out.splitlines()[-1])["fault"]
    return log.read_text().strip().splitlines()[-1]


def google(context, name, only=""):
    """The times (ns), or bytes per second if they are counted, of each repetition of a Google Benchmark program. `only`
    selects some of its benchmarks."""
    repetitions, least = (2, 0.001) if context.quick else (7, 0.15)
    out = output_of(context, [context.programs / f"bench_{name}", "--benchmark_format=json", f"--benchmark_repetitions={repetitions}",
                              f"--benchmark_min_time={least}", "--benchmark_enable_random_interleaving=true", f"--benchmark_filter={only or '.'}"], f"bench_{name}")
    samples = {}
    for run in json.loads(out)["benchmarks"]:
        if run.get("error_occurred"):
            raise BenchError(f"bench_{name}, {run['name']}: {run['error_message']}")
        if run["run_type"] != "iteration":
            continue
        factor = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}[run["time_unit"]]
        value = 1e9 * run["per_scope"] if "per_scope" in run else run.get("bytes_per_second", run["real_time"] * factor)
        key = run["name"].replace("/real_time", "").replace("/manual_time", "").replace(f"/repeats:{repetitions}", "")
        samples.setdefault(key, []).append((run["repetition_index"], value))
    return {key: [value for _, value in sorted(runs)] for key, runs in samples.items()}


def minus(left, right):
    return [a - b for a, b in zip(left, right, strict=True)]


def recorder(context, name, flags, seconds, runs):
    """Runs bench_recorder several times, each with its bare loops and its sleeping loop. The names of the samples begin
    with `name`."""
    seconds, runs = (0.3, 2) if context.quick else (seconds, runs)
    samples = {}
    for _ in range(runs):
        out = output_of(context, [context.programs / "bench_recorder", "--json", "--seconds", str(seconds), *flags],
                        f"bench_recorder ({name})")
        run = json.loads(out.splitlines()[-1])
        bare = {key: (run["bare_before"][key] + run["bare_after"][key]) / 2 for key in run["bare_before"]}
        values = {f"{who}{key.removesuffix('_ns')}": value
                  for who, loop in (("", run["kymo"]), ("bare.", bare), ("sleeping.", run["sleeping"]))
                  for key, value in loop.items()}
        values |= {"p99-spin": values["p99"], "beyond": values["cores"] - values["sleeping.cores"], "lost": run["missed_ring_full"] / run["ticks_due"],
                   "hour": 3600 * run["rate"] * run["bytes"] / max(1, run["rows_written"])}  # of bytes, if no tick is missed
        for key, value in values.items():
            samples.setdefault(f"{name}.{key}", []).append(value)
    return samples


def by_turns(context, name, flags, rounds, runs):
    """Runs bench_busy_machine several times: the recorder and a bare loop with the same policy, in slices that alternate."""
    rounds, runs = (2, 2) if context.quick else (rounds, runs)
    samples = {}
    for _ in range(runs):
        out = output_of(context, [context.programs / "bench_busy_machine", "--json", "--rounds", str(rounds), "--seconds", "0.5", *flags],
                        f"bench_busy_machine ({name})")
        run = json.loads(out.splitlines()[-1])
        sleeping, kymo = run["sleeping loop"], run["kymo"]
        # One tick is added to each, so that there is a ratio if none was missed.
        values = {"missed-ratio": (kymo["missed"] + 1) / (sleeping["missed"] + 1) * sleeping["due"] / kymo["due"]}
        for who, loop in (("", kymo), ("sleeping.", sleeping)):
            values |= {f"{who}missed": loop["missed"] / loop["due"], f"{who}p99": loop["p99_ns"], f"{who}cores": loop["cores"]}
        for key, value in values.items():
            samples.setdefault(f"{name}.{key}", []).append(value)
    return samples


def script(context, name, arguments, quick_arguments, duckdb=False):
    """The samples that a program of this folder prints with --json, in its last line."""
    more = ["--duckdb", context.duckdb] if duckdb else []
    out = output_of(context, [ROOT / "bench" / name, *(quick_arguments if context.quick else arguments), *more, "--json"], name)
    return json.loads(out.splitlines()[-1])["samples"]


def kept_profiles(context):
    """The samples of bench_kept_profiles. Its store is on a disk."""
    folder = context.disk / "profiles"
    folder.mkdir()
    sizes = ["--minutes", "20", "--services", "5"] if context.quick else []
    out = output_of(context, [context.programs / "bench_kept_profiles", "--folder", folder, *sizes], "bench_kept_profiles")
    shutil.rmtree(folder)
    return json.loads(out)["samples"]


@contextlib.contextmanager
def beside_load(context, kind):
    """Runs four processes that keep the CPUs busy: shells with a loop, or compilers."""
    source = ROOT / "bench/counter_add.cc"
    compiler = f"c++ -std=c++20 -O1 -fsyntax-only -I{ROOT}/include -I{context.programs.parent}/include {source}"
    command = {"loops": "while :; do :; done", "compilers": f"while {compiler}; do :; done"}[kind]
    if kind == "compilers":
        output_of(context, ["sh", "-c", compiler], "the compiler that keeps the machine busy")
    # They end with this process, however it ends, because they must not disturb the next measurement.
    children = [subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "sh", "-c", command], start_new_session=True, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL) for _ in range(4)]
    try:
        yield
        if any(child.poll() is not None for child in children):
            raise BenchError(f"the load ({kind}) ended before what was measured beside it")
    finally:
        for child in children:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
