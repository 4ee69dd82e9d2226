"""What `scripts/bench` measures: parts, each with its commands, figures, rivals in the same run, and goals."""

import dataclasses
import typing

import steps
from figures import Figure, Goal


@dataclasses.dataclass(frozen=True)
class Part:
    name: str
    title: str
    text: str  # for the document: what is measured, in plain sentences
    run: typing.Callable  # takes a steps.Context and returns samples; raises steps.BenchError if a check fails
    figures: list
    builds: tuple = ("bench",)
    page: bool = True  # False: docs/performance.md has the part only while it misses a goal


def at_most(limit, of="value"):
    return Goal(of, at_most=limit)


def at_least(limit, of="value"):
    return Goal(of, at_least=limit)


def cost(name, text, beside="", goal=None):
    return Figure(name, text, "ns", beside, goal)


# --- the library, in a program of its own ---------------------------------------------------------

def counter_samples(context):
    samples = steps.google(context, "counter_add")
    for threads in ("1", "2"):
        empty = samples[f"empty_loop/threads:{threads}"]
        samples[f"net/threads:{threads}"] = steps.minus(samples[f"kymo_counter/threads:{threads}"], empty)
        both = samples[f"kymo_two_counters/threads:{threads}"]
        samples[f"turns/threads:{threads}"] = [net / 2 for net in steps.minus(both, empty)]
    return samples


def counter_figures():
    for threads, say in (("1", "one thread"), ("2", "two threads, the same counter")):
        end = f"/threads:{threads}"
        yield cost("empty_loop" + end, f"empty loop, {say}")
        yield cost("std_atomic" + end, f"`std::atomic`, relaxed, {say}")
        yield cost("prometheus_counter" + end, f"prometheus-cpp `Counter`, {say}")
        # An atomic addition locks the bus. Ours is a load, an addition and a store. With two threads, it also shares no
        # cache line.
        yield cost("kymo_counter" + end, f"**`Counter::add`**, {say}", "std_atomic" + end, at_most(0.6 if threads == "1" else 0.2, "ratio"))
        yield cost("net" + end, f"`Counter::add` beyond the empty loop, {say}")
        yield cost("turns" + end, f"two counters in turn, each, beyond the empty loop, {say}")


COUNTER = Part(
    "counter", "A counter's addition",
    "Inlined into a program that links the shared libkymo. An addition is a load, an addition and a store to memory of the thread's\n"
    "own. In a loop that does nothing else, each addition waits for the one before.",
    counter_samples, list(counter_figures()))

HISTOGRAM = Part(
    "histogram", "A histogram's record", "Both with the same buckets.",
    lambda context: steps.google(context, "histogram"),
    [figure for threads, say in (("1", "one thread"), ("2", "two threads, the same histogram")) for figure in (
        cost(f"empty_loop/threads:{threads}", f"empty loop, {say}"),
        cost(f"prometheus_histogram/threads:{threads}", f"prometheus-cpp `Histogram`, {say}"),
        cost(f"kymo_histogram/threads:{threads}", f"**`Histogram::record`**, {say}", f"prometheus_histogram/threads:{threads}"))])

SAMPLE = Part(
    "sample", "A sample",
    "Reads so many counters into a row. Beside it: prometheus-cpp's `Collect` of as many counters.",
    lambda context: steps.google(context, "sample"),
    [figure for count in (4, 16, 64) for figure in (
        cost(f"atomic_loads/{count}", f"loads of {count} `std::atomic`"),
        cost(f"prometheus_collect/{count}", f"prometheus-cpp `Collect` of {count} counters"),
        cost(f"sample/{count}", f"**a sample of {count} counters**", f"prometheus_collect/{count}"),
        # Each cache line of cells must come from the other CPU: this takes about as long as the sample itself, in each
        # direction.
        cost(f"sample_beside_a_writer/{count}", f"{count} counters, beside a thread that adds to them", f"sample/{count}",
             at_most(3, "ratio")))])

THREADS = (1, 16, 64, 256)


def threads_samples(context):
    samples = {}
    for count in THREADS:  # in a process each, because the cells of earlier threads would make later samples slower
        samples.update(steps.google(context, "threads", f"/{count}$"))
    return samples


SAMPLE_OF_THREADS = Part(
    "threads", "A sample in a program with many threads",
    "64 counters, to each of which so many threads have added. What counts is the highest number of threads at once.",
    threads_samples,
    [cost(f"sample_of_threads/{count}", f"a sample, {count} thread{'s' if count > 1 else ''}",
          "sample_of_threads/1" if count > 1 else "") for count in THREADS], page=False)

RULE = Part(
    "rule", "A rule of the flight recorder",
    "What a rule costs for each row. Beside it: a rule that compares a row with the row before.",
    lambda context: steps.google(context, "rule"),
    [figure for interval, say in (("1000000", "1 kHz"), ("1000", "1 MHz")) for figure in (
        cost(f"growth_rule/{interval}", f"growth from row to row, {say}"),
        cost(f"rate_rule/{interval}", f"**a rate**, {say}", f"growth_rule/{interval}"))], page=False)

SCOPE = Part(
    "scope", "A scope",
    "Recorded into a tree of 60 scopes. Each open and each close reads the clock once.",
    lambda context: steps.google(context, "scope"),
    [cost("empty_loop", "empty loop"), cost("clock_read", "one read of the clock"),
     cost("nobody_listens", "a scope, nobody listens", "empty_loop"),
     # One read of the clock, and about the same time again to add the node to the tree.
     cost("open_alone/60", "**to open a scope**", "clock_read", at_most(2.2, "ratio")),
     cost("open_and_close/60", "to open and close a scope", "clock_read")])


def text_figures():
    for changing, say in (("16", "all change"), ("4", "a quarter changes")):
        end = f"/changing:{changing}"

        def speed(name, text, beside="", goal=None, end=end, say=say):
            return Figure(name + end, f"{text}, {say}", "bytes/s", beside and beside + end, goal)

        yield speed("to_chars_loop", "loop over `std::to_chars`")
        yield speed("formatter", "**formatter**", "to_chars_loop", at_least(2.5, "ratio"))
        yield speed("text_to_tmpfs", "write(2) of ready text to tmpfs")
        yield speed("writer_to_tmpfs", "formatter and write(2) to tmpfs", "text_to_tmpfs")
        yield speed("text_to_disk", "write(2) of ready text to disk")
        yield speed("writer_to_disk", "formatter and write(2) to disk", "text_to_disk")
        yield speed("zstd_writer_to_disk", "`.tsv.zst` to disk, as text", "writer_to_disk")


TEXT = Part(
    "text", "Rows to text",
    "16 columns of 6 to 12 digits; all of them change from row to row, or a quarter of them.",
    lambda context: steps.google(context, "writer"), list(text_figures()))

# --- the recorder ---------------------------------------------------------------------------------

LOOPS = {
    "thrifty": ("1 kHz, thrifty (the default)", ["--rate", "1000"], 5, 5),
    "precise": ("1 kHz, precise", ["--rate", "1000", "--precise"], 5, 5),
    "precise-10k": ("10 kHz, precise", ["--rate", "10000", "--precise"], 5, 3),
    "megahertz": ("1 MHz, 16 counters, to disk", ["--rate", "1000000"], 5, 3),
    "megahertz-adder": ("1 MHz beside a thread that adds, real-time priority",
                        ["--rate", "1000000", "--adder", "--priority", "50", "--cpu", "0"], 5, 3),
    # 2 s are 1.2 GB. A virtual machine may get fresh memory from its host so slowly that longer runs measure the host: here
    # tmpfs takes 2.7 GB/s until about 1.4 GB, and 0.37 GB/s from then on.
    "megahertz-64": ("1 MHz, 64 counters, to tmpfs", ["--rate", "1000000", "--counters", "64", "--changing", "16"], 2, 3),
    "zstd-64": ("400 kHz, 64 counters, 16 of them growing in every row, to disk through zstd",
                ["--rate", "400000", "--counters", "64", "--changing", "16"], 8, 3),
    "4-counters": ("4 MHz, 4 counters, to tmpfs", ["--rate", "4000000", "--counters", "4"], 3, 3),
}
IN_MEMORY = {"megahertz-64", "4-counters"}


def recorder_samples(context):
    samples = {}
    for name, (_, flags, seconds, runs) in LOOPS.items():
        folder = context.memory if name in IN_MEMORY else context.disk
        output = folder / ("run.tsv.zst" if name.startswith("zstd") else "run.tsv")
        samples.update(steps.recorder(context, name, [*flags, "--output", output], seconds, runs))
    return samples


def recorder_figures():
    for name in ("thrifty", "precise", "precise-10k"):
        text, precise = LOOPS[name][0], name != "thrifty"
        yield Figure(f"{name}.sleeping.p99", f"{text}: p99 error of a sleeping loop", "ns")
        yield Figure(f"{name}.sleeping.cores", f"{text}: a sleeping loop", "cores")
        if precise:
            yield Figure(f"{name}.bare.p50", f"{text}: median error of a loop that spins a whole core", "ns")
        yield Figure(f"{name}.p50", f"{text}: median error", "ns", f"{name}.bare.p50" if precise else "",
                     at_most(2, "ratio") if precise else None)
        yield Figure(f"{name}.p99", f"{text}: p99 error", "ns", f"{name}.sleeping.p99", at_most(1 if precise else 1.2, "ratio"))
        shown = text if name == "precise-10k" else f"**{text}**"
        yield Figure(f"{name}.cores", f"{shown}: CPU", "cores", f"{name}.sleeping.cores", None if precise else at_most(1.2, "ratio"))
        if precise:  # the limit in the metadata: max_spin_share is 0.15, but below 200 µs the limit is half the interval
            yield Figure(f"{name}.beyond", f"{text}: CPU beyond the sleeping loop's", "cores", "",
                         at_most(0.15 if name == "precise" else 0.5))
    yield Figure("precise.bare.p99", "1 kHz: p99 error of a loop that spins a whole core", "ns")
    yield Figure("precise.p99-spin", "1 kHz, precise: p99 error beside that loop", "ns", "precise.bare.p99")
    limits = {"megahertz": 0.99, "megahertz-adder": 0.9, "megahertz-64": 0.9, "zstd-64": None, "4-counters": None}
    for name, limit in limits.items():
        text = LOOPS[name][0]
        yield Figure(f"{name}.bare.on_time", f"{text}: ticks on time, a bare loop", "share")
        yield Figure(f"{name}.on_time", f"{f'**{text}**' if limit else text}: ticks on time", "share", f"{name}.bare.on_time",
                     at_least(limit, "ratio") if limit else None)
        yield Figure(f"{name}.lost", f"{text}: ticks lost for a full ring", "share", "",
                     at_most(0) if name == "zstd-64" else None)
        yield Figure(f"{name}.bare.cores", f"{text}: CPU of a bare loop", "cores")
        yield Figure(f"{name}.cores", f"{text}: CPU", "cores", f"{name}.bare.cores", at_most(1.3, "ratio") if name == "megahertz" else None)


RECORDER = Part(
    "recorder", "The recorder as a whole",
    "*On time* is the share of ticks taken within half an interval of their deadline. The bare loop only reads the clock and notes its\n"
    "deadlines; the sleeping loop does the same with `clock_nanosleep`. Linux stops a real-time thread that spins for a part of each second\n"
    "(`/proc/sys/kernel/sched_rt_runtime_us`), the bare loop as well.",
    recorder_samples, list(recorder_figures()))


RATES = {
    "10": ("10 Hz", ["--rate", "10"]),
    "100": ("100 Hz", ["--rate", "100"]),
    "1k": ("1 kHz", ["--rate", "1000"]),
    "1k-zstd": ("1 kHz, `.tsv.zst`", ["--rate", "1000"]),
    "1k-histograms": ("1 kHz, and two histograms: 108 columns", ["--rate", "1000", "--histograms"]),
    "1k-histograms-zstd": ("1 kHz, and two histograms, `.tsv.zst`", ["--rate", "1000", "--histograms"]),
    "10k": ("10 kHz", ["--rate", "10000"]),
    "100k": ("100 kHz", ["--rate", "100000"]),
}


def rates_samples(context):
    samples = {}
    for name, (_, flags) in RATES.items():
        output = context.disk / ("run.tsv.zst" if name.endswith("zstd") else "run.tsv")
        samples.update(steps.recorder(context, name, [*flags, "--output", output], 5, 3))
    return samples


def rates_figures():
    for name, (text, _) in RATES.items():
        yield Figure(f"{name}.sleeping.cores", f"{text}: a sleeping loop", "cores")
        yield Figure(f"{name}.cores", f"{text}: CPU", "cores", f"{name}.sleeping.cores")
        yield Figure(f"{name}.hour", f"{text}: disk, an hour", "bytes")


RATES_PART = Part(
    "rates", "What a recording costs, by its rate",
    "The default pace with 16 counters of 6 to 12 digits, to disk, while another thread adds to all of them. The histograms are those of\n"
    "[library.md](library.md#histograms) for times of 1 to 500 ms and for sizes.",
    rates_samples, list(rates_figures()), page=False)


def busy_samples(context):
    samples = {}
    for load in ("loops", "compilers"):
        for policy, flags in (("normal", []), ("real-time", ["--priority", "1"])):
            with steps.beside_load(context, load):
                samples.update(steps.by_turns(context, f"{load}.{policy}", flags, 8, 4))
    return samples


def busy_figures():
    for load, beside in (("loops", "beside four busy loops"), ("compilers", "beside four compilers")):
        for policy in ("normal", "real-time"):
            name, text = f"{load}.{policy}", f"1 kHz, {policy} policy, {beside}"
            yield Figure(f"{name}.sleeping.missed", f"{text}: ticks missed by a sleeping loop", "share")
            yield Figure(f"{name}.sleeping.p99", f"{text}: p99 error of a sleeping loop", "ns")
            yield Figure(f"{name}.sleeping.cores", f"{text}: CPU of a sleeping loop", "cores")
            yield Figure(f"{name}.missed", f"**{text}**: ticks missed", "share")
            yield Figure(f"{name}.missed-ratio", f"{text}: ticks missed, of the loop's", "", "", at_most(1.2))
            yield Figure(f"{name}.p99", f"{text}: p99 error", "ns", f"{name}.sleeping.p99", at_most(1.2, "ratio"))
            yield Figure(f"{name}.cores", f"{text}: CPU", "cores", f"{name}.sleeping.cores", at_most(1.5, "ratio"))


BUSY = Part(
    "busy", "The recorder on a busy machine",
    "The thrifty recorder and a sleeping loop of the same policy, by turns, beside other work that keeps every core busy.",
    busy_samples, list(busy_figures()))

# --- recordings -----------------------------------------------------------------------------------


def per_core(name, text, beside="", goal=None):
    return Figure(f"{name}.per_core", text, "bytes/s", beside and f"{beside}.per_core", goal)


READING = Part(
    "reading", "Reading a recording",
    "The sums of all columns of a plain recording of 17 columns, every value changing in every row, with the file in the page cache.\n"
    "Bytes for each second of CPU time.",
    lambda context: steps.script(context, "read_speed.py", ["--megabytes", "250", "--rounds", "5"], ["--megabytes", "5",
                                 "--rounds", "2"], duckdb=True),
    [per_core("wc", "`wc -l`"), per_core("awk", "awk"), per_core("pandas", "pandas"), per_core("duckdb", "DuckDB, 1 thread"),
     per_core("kymo", "**kymo, 1 thread**", "duckdb", at_least(10, "ratio")),
     Figure("duckdb-all.wall", "DuckDB, all threads, of wall time", "bytes/s"),
     Figure("kymo-apart.wall", "kymo, a process for each core that reads the whole file with 1 thread, all together", "bytes/s"),
     Figure("kymo-all.wall", "kymo, all threads, of wall time", "bytes/s", "kymo-apart.wall", at_least(0.8, "ratio"))])

REPORT = Part(
    "report", "A report",
    "Of each of 16 counters of such a recording: lowest, highest, mean, and three percentiles of its rate over windows of 10 ms.",
    lambda context: steps.script(context, "report_speed.py", ["--megabytes", "250", "--rounds", "3"], ["--megabytes", "5",
                                 "--rounds", "2"], duckdb=True),
    [figure for name, text in (("duckdb", "DuckDB"), ("pandas", "pandas"), ("kymo", "**`kymo report`**"),
                               ("kymo-html", "`kymo report --html`")) for figure in (
        Figure(f"{name}.wall", f"{text}, wall time", "ns", "duckdb.wall" if "kymo" in name else ""),
        Figure(f"{name}.memory", f"{text}, memory", "bytes", "duckdb.memory" if "kymo" in name else ""))],
    builds=("bench", "release"))

PAGE = Part(
    "page", "The page of a long recording",
    "10 million rows of 4 counters whose differences are random, opened from a file in Chromium. Beside it: a page of as many bytes\n"
    "of text, and the recording packed by gzip.",
    lambda context: steps.script(context, "page_open", ["10000000", "3"], ["100000", "2"]),
    [Figure("tsv.size", "the recording", "bytes"), Figure("gzip.size", "the recording, by `gzip -6`", "bytes"),
     Figure("page.size", "**the page**", "bytes", "gzip.size", at_most(0.6, "ratio")),
     Figure("inert.paint", "a page of as many bytes of text: first paint", "ns"),
     Figure("inert.whole", "a page of as many bytes of text: loaded", "ns"),
     Figure("page.paint", "the page: first paint", "ns", "inert.paint"),
     Figure("page.envelopes", "**the page**: charts with their envelopes", "ns", "inert.whole", at_most(0.3, "ratio")),
     Figure("page.whole", "**the page**: every single sample", "ns", "inert.whole")],
    builds=("release",))

# --- dumps ----------------------------------------------------------------------------------------


def dump_samples(context):
    whole = steps.script(context, "dump_overhead.py", ["--pairs", "30", "--mib", "512"], ["--pairs", "2", "--mib", "16"])
    small = steps.script(context, "dump_overhead.py", ["--pairs", "30", "--mib", "1"], ["--pairs", "2", "--mib", "1"])
    return {**whole, **{f"small.{name}": values for name, values in small.items()}}


def milliseconds(name, text, beside="", goal=None, share=False):
    return Figure(name, text, "ns", beside, goal, share)


DUMP = Part(
    "dump", "A dump by kymod at 1 kHz",
    "Pairs of dumps of one process of 512 MiB onto tmpfs, by `kymo dump` and by a bare `criu dump`; and of one of 1 MiB. kymod's own\n"
    "time is from request in to reply out, less the life of the CRIU process.",
    dump_samples,
    [milliseconds("bare.wall", "bare `criu dump`, wall time"),
     milliseconds("kymo.wall", "**`kymo dump`**, wall time", "bare.wall", at_most(1.02, "ratio"), True),
     milliseconds("bare.frozen", "bare `criu dump`, frozen time"),
     milliseconds("kymo.frozen", "**`kymo dump`**, frozen time", "bare.frozen", at_most(1.02, "ratio"), True),
     milliseconds("kymo.own", "**kymod's own time**"),
     milliseconds("small.bare.wall", "bare `criu dump`, 1 MiB, wall time"),
     milliseconds("small.kymo.own", "kymod's own time, 1 MiB", "small.bare.wall", at_most(0.1, "ratio"))],
    builds=("release",))

CONTAINER = Part(
    "container", "A dump of a container",
    "A small container, left running, by kymod and by the bare command. kymod's own time is its request less the life of runc or\n"
    "podman.",
    lambda context: steps.script(context, "container_overhead.py", ["--dumps", "20"], ["--dumps", "2"]),
    [figure for kind in ("runc", "podman") for figure in (
        milliseconds(f"{kind}.bare", f"bare {kind}, wall time"),
        milliseconds(f"{kind}.kymo", f"**`kymo dump {kind}`**, wall time", f"{kind}.bare", None, True),
        milliseconds(f"{kind}.own", f"kymod's own time, {kind}", f"{kind}.bare", at_most(0.05, "ratio")))] +
    [milliseconds("podman.over_runc", "podman's own time over its runc")],
    builds=("release",))

WATCH = Part(
    "watch", "What watching adds to a dump",
    "Pairs of dumps of one process of 256 MiB by kymod, one of each pair watched by `kymo progress` at ten updates a second.",
    lambda context: steps.script(context, "watch_overhead.py", ["--pairs", "20", "--mib", "256"], ["--pairs", "2", "--mib", "16"]),
    [milliseconds("alone.duration", "alone, request in to reply out"),
     milliseconds("watched.duration", "**watched**, request in to reply out", "alone.duration", at_most(1.02, "ratio"), True),
     milliseconds("alone.frozen", "alone, frozen time"),
     milliseconds("watched.frozen", "watched, frozen time", "alone.frozen", at_most(1.02, "ratio"), True)],
    builds=("release",))

STREAM = Part(
    "stream", "Streaming onto a slow disk",
    "A process with 64 MiB of lines of a log in memory, onto a disk that bindfs lets take 20 MB/s. Memory that does not pack gains\n"
    "nothing.",
    lambda context: steps.script(context, "stream_slow_disk.py", ["--pairs", "5", "--mib", "64", "--write-rate", "20M"],
                                 ["--pairs", "2", "--mib", "16", "--write-rate", "50M"]),
    [figure for way, text in (("plain", "as CRIU writes it"), ("none", "streamed"),
                              ("zstd", "**`--compression zstd`**"), ("lz4", "`--compression lz4`"))
     for figure in (
        milliseconds(f"{way}.duration", text, "" if way == "plain" else "plain.duration",
                     at_most(1, "ratio") if way in ("zstd", "lz4") else None),
        Figure(f"{way}.bytes", f"{text}, on disk", "bytes", "" if way == "plain" else "plain.bytes"))],
    builds=("release",))

SAFE = Part(
    "safe", "Durable images, and checksums",
    "A process of 256 MiB is dumped onto a disk so that it ends, and restored. The disk is idle before each. A restore compares the\n"
    "checksums.",
    lambda context: steps.script(context, "safe_dumps.py", ["--pairs", "15", "--mib", "256", "--folder", context.disk],
                                 ["--pairs", "2", "--mib", "16", "--folder", context.disk]),
    [figure for way, text in (("plain", "without either"), ("sync", "`--sync`"), ("checksums", "`--checksums`"))
     for figure in (
        milliseconds(f"{way}.dump", f"**dump**, {text}", "" if way == "plain" else "plain.dump"),
        milliseconds(f"{way}.frozen", f"frozen time, {text}", "" if way == "plain" else "plain.frozen"),
        milliseconds(f"{way}.restore", f"**restore**, {text}", "" if way == "plain" else "plain.restore"))],
    builds=("release",))

OUTSIDE = Part(
    "outside", "Downtime, seen from without",
    "How long a process stood still by `kymo record -p`, which knows of no dump, beside CRIU's frozen time.",
    lambda context: steps.script(context, "outside_downtime.py", ["--dumps", "8"], ["--dumps", "2"]),
    [milliseconds("criu.frozen", "CRIU's frozen time"),
     milliseconds("seen", "**seen from without**", "criu.frozen", at_most(1.1, "ratio"), True),
     Figure("captured", "ticks captured by the recording", "share", "", at_least(0.99))],
    builds=("release",))

# --- programs and the page ------------------------------------------------------------------------

START = Part(
    "start", "The command's start", "`--version` of each, in turns.",
    lambda context: steps.script(context, "command_start.py", ["--rounds", "40"], ["--rounds", "5"]),
    [milliseconds("true", "`/bin/true`"), milliseconds("criu", "`criu --version`"),
     milliseconds("kymo", "**`kymo --version`**", "criu")],
    builds=("release",), page=False)

LIVE = Part(
    "live", "The page of kymod",
    "The first paint, beside an empty page. A chart of 100,000 points and 2 lines drawn anew, beside a bare canvas.",
    lambda context: steps.script(context, "live_page", ["10"], ["2"]),
    [milliseconds("empty.paint", "an empty page: first paint"),
     milliseconds("live.paint", "**the page**: first paint", "empty.paint", at_most(6, "ratio")),
     milliseconds("canvas.redraw", "a bare canvas: 2 lines through 100,000 points"),
     milliseconds("live.redraw", "**a chart of 100,000 points**, redrawn", "canvas.redraw", at_most(0.5, "ratio"))],
    builds=("release",), page=False)

STALLED = Part(
    "stalled", "Requests beside stalled streams",
    "`/metrics` and `/healthz` of a kymod with 50 event streams whose clients read nothing, and of a kymod without.",
    lambda context: steps.script(context, "stalled_streams.py", ["--rounds", "3"], ["--rounds", "1", "--requests", "5"]),
    [milliseconds("without.median", "without: median"), milliseconds("without.worst", "without: worst"),
     milliseconds("stalled.median", "**beside 50 stalled streams**: median", "without.median"),
     milliseconds("stalled.worst", "beside 50 stalled streams: worst", "without.worst", at_most(3, "ratio"))],
    builds=("release",), page=False)

DEADLINE = Part(
    "deadline", "The answer after a deadline",
    "A process of 16 MiB is dumped with a deadline of 3 s onto a disk that takes no page of memory. The time is that from the\n"
    "deadline to the end of `kymo dump`. The process runs on.",
    lambda context: steps.script(context, "stalled_dumps.py", ["--pairs", "5"], ["--pairs", "1"]),
    [milliseconds("streamed.late", "**through kymod**"), milliseconds("by-criu.late", "by CRIU itself")],
    builds=("release",))

STACKS = Part(
    "stacks", "A stack profile at 99 Hz",
    "A program with two busy threads, profiled by `kymo profile`, by `perf record -g`, which only copies stacks into a file, and not at\n"
    "all. The slow-down is that of the program's CPU time for the same work.",
    lambda context: steps.script(context, "stacks_cost.py", ["--rounds", "20"], ["--rounds", "2", "--work", "500"]),
    [Figure("perf.cores", "`perf record -F 99 -g`: CPU", "cores"),
     Figure("kymo.cores", "**`kymo profile`**: CPU, with its BPF program", "cores", "perf.cores", at_most(0.01)),
     Figure("kymo.bpf", "the BPF program alone", "cores"),
     milliseconds("bare.load", "the program, not profiled"),
     milliseconds("perf.load", "the program, profiled by perf", "bare.load", None, True),
     milliseconds("kymo.load", "**the program, profiled by kymo**", "bare.load", None, True)],
    builds=("release",))

KEPT_STACKS = Part(
    "kept-stacks", "A day of stack profiles",
    "Made-up minutes of 200 services, with 30 to 60 samples each of 400 stacks, go into the store of `kymod --profiles`. A row is one stack\n"
    "of one service in one minute. Beside it: the same minutes as files of pprof.",
    steps.kept_profiles,
    [Figure("pprof.bytes", "a file of pprof for each minute: bytes a row", ""),
     Figure("bytes", "**the store**: bytes a row", "", "pprof.bytes"),
     milliseconds("add", "a minute is added"), cost("row", "the same, for each row"),
     milliseconds("query.services", "the services of the day"),
     milliseconds("query.one", "**the stacks of one service in the day**"),
     milliseconds("query.all", "the stacks of all services in the day")], page=False)

DUMP_STACKS = Part(
    "dump-stacks", "Stack profiles of dumps",
    "Dumps of one process of 512 MiB onto tmpfs with `kymod --profiling-stacks` (99 Hz), without it, and without it a second time. The\n"
    "last one is the control: what it differs is noise.",
    lambda context: steps.script(context, "dump_stacks.py", ["--pairs", "30", "--mib", "512"], ["--pairs", "2", "--mib", "64"]),
    [milliseconds("without.frozen", "frozen time without stacks"),
     milliseconds("again.frozen", "the control: without stacks again", "without.frozen", None, True),
     milliseconds("with.frozen", "**frozen time with stacks**", "without.frozen", None, True)],
    builds=("release",))

PARTS = {part.name: part for part in (
    COUNTER, HISTOGRAM, SAMPLE, SAMPLE_OF_THREADS, RULE, SCOPE, TEXT, RECORDER, RATES_PART, BUSY, READING, REPORT, PAGE, DUMP, CONTAINER, WATCH, STREAM, SAFE, OUTSIDE,
    START, LIVE, STALLED, DEADLINE, STACKS, KEPT_STACKS, DUMP_STACKS)}
