#!/usr/bin/env bats
# kymo record around a command: the command behaves as without it, the report is right, and bad input
# gets one clear line.

bats_require_minimum_version 1.5.0
load refused

setup() {
  build="${KYMO_BUILD_DIR:-$BATS_TEST_DIRNAME/../../build/release}"
  kymo="$build/tools/kymo/kymo"
  dir="$BATS_TEST_TMPDIR/run"  # a folder of its own, because bats keeps its files in $BATS_TEST_TMPDIR
  mkdir "$dir"
}

@test "the command keeps its output and its exit code; the report goes to stderr" {
  run --separate-stderr "$kymo" record --output "$dir/run.tsv" -- sh -c 'echo hello; exit 7'
  [ "$status" -eq 7 ]
  [ "$output" = hello ]
  [[ "$stderr" == *tree_minor_faults* ]]
  [[ "$stderr" == *"$dir/run.tsv"* ]]
  head -1 "$dir/run.tsv" | grep -q $'^Time (ns)\ttree_cpu_ns\t'
}

@test "a command ended by a signal" {
  run --separate-stderr "$kymo" record -- sh -c 'kill -KILL $$'
  [ "$status" -eq 137 ]
}

@test "without --output nothing is kept" {
  cd "$dir"
  TMPDIR="$dir" run --separate-stderr "$kymo" record -- true
  [ "$status" -eq 0 ]
  [[ "$stderr" == *"not kept"* ]]
  [ -z "$(ls -A "$dir")" ]
}

@test "what ended children did still counts, and no counter falls" {
  run --separate-stderr "$kymo" record --output "$dir/run.tsv" -- \
    sh -c 'head -c 5000000 /dev/zero | wc -c; (sleep 0.1 & sleep 0.05); dd if=/dev/zero of=/dev/null bs=100k count=30 2>/dev/null'
  [ "$status" -eq 0 ]
  /usr/bin/python3 - "$dir/run.tsv" <<'END'
import sys
rows = [line.rstrip("\n").split("\t") for line in open(sys.argv[1])]
gauges = {"profiler_tree_age_ns", "profiler_cgroup_age_ns", "tree_resident_bytes", "tree_processes", "tree_threads", "tree_stopped", "cgroup_memory_bytes"}
columns = {name: [int(row[i]) for row in rows[1:]] for i, name in enumerate(rows[0])}
for name, values in columns.items():
    assert name in gauges or values == sorted(values), name
assert columns["tree_written_bytes"][-1] >= 8_000_000, columns["tree_written_bytes"][-1]
assert max(columns["tree_processes"]) >= 2
END
}

@test "no counter of a running tree goes back while its children end" {
  # One child stays a zombie, the others are waited for.
  /usr/bin/python3 -c '
import os, time
if os.fork() == 0:
    sum(range(2_000_000))
    os._exit(0)
while True:
    child = os.fork()
    if child == 0:
        os.write(os.open("/dev/null", os.O_WRONLY), bytes(100_000))
        sum(range(100_000))
        os._exit(0)
    os.waitpid(child, 0)
    time.sleep(0.002)' 3>&- &
  pid=$!
  run --separate-stderr "$kymo" record -p "$pid" --duration 1s --output "$dir/run.tsv"
  kill -KILL "$pid"
  [ "$status" -eq 0 ]
  /usr/bin/python3 - "$dir/run.tsv" "$dir/run.meta.json" <<'END'
import json, sys
rows = [line.rstrip("\n").split("\t") for line in open(sys.argv[1])]
kinds = {column["name"]: column["kind"] for column in json.load(open(sys.argv[2]))["columns"]}
for i, name in enumerate(rows[0][1:], 1):
    values = [int(row[i]) for row in rows[1:]]
    assert kinds[name] == "gauge" or values == sorted(values), name
assert kinds["tree_cpu_ns"] == "counter"
END
  run --separate-stderr "$kymo" report "$dir/run.tsv"
  [ "$status" -eq 0 ]
  [[ "$output" != *"goes back"* ]]
}

@test "SIGINT is the command's, and kymo waits for it" {
  run --separate-stderr timeout 60 "$kymo" record -- sh -c \
    'trap "echo caught; exit 3" INT; kill -INT $PPID $$; while :; do sleep 0.01; done'
  [ "$status" -eq 3 ]
  [ "$output" = caught ]
}

@test "SIGTERM is passed on" {
  run --separate-stderr timeout 60 "$kymo" record -- sh -c \
    'trap "echo caught; exit 4" TERM; kill -TERM $PPID; while :; do sleep 0.01; done'
  [ "$status" -eq 4 ]
  [ "$output" = caught ]
}

@test "a running process, for a time, also while it is stopped" {
  sleep 60 &
  pid=$!
  kill -STOP "$pid"
  run --separate-stderr "$kymo" record -p "$pid" --duration 300ms --output "$dir/run.tsv"
  kill -KILL "$pid"
  [ "$status" -eq 0 ]
  [ -z "$output" ]
  /usr/bin/python3 - "$dir/run.tsv" <<'END'
import json, sys
rows = [line.rstrip("\n").split("\t") for line in open(sys.argv[1])]
stopped = rows[0].index("tree_stopped")
assert all(row[rows[0].index("target_stopped")] == "1" for row in rows[1:])
assert int(rows[-1][rows[0].index("machine_cpu_ns")]) > 0
due = json.load(open(sys.argv[1].replace(".tsv", ".meta.json")))["stats"]["ticks_due"]
assert due > 290 and len(rows) > 1, (due, len(rows))
assert all(row[stopped] == "1" for row in rows[1:])
END
}

@test "with --bpf, the system calls of a running process by class" {
  dd if=/dev/zero of=/dev/null bs=4096 >/dev/null 2>&1 3>&- &
  pid=$!
  run --separate-stderr "$kymo" record -p "$pid" --bpf --duration 0.5 --output "$dir/run.tsv"
  kill -KILL "$pid"
  [ "$status" -eq 0 ] || { echo "$stderr"; false; }
  /usr/bin/python3 - "$dir/run.tsv" <<'END'
import sys
rows = [line.rstrip("\n").split("\t") for line in open(sys.argv[1])]
grown = {name: int(rows[-1][i]) - int(rows[1][i]) for i, name in enumerate(rows[0])}
assert grown["target_sys_read_calls"] > 100, grown
assert grown["target_sys_read_bytes"] >= 4096 * (grown["target_sys_read_calls"] - 1), grown
assert grown["target_run_ns"] > 0, grown
assert "criu_run_ns" not in grown
END
}

@test "a counter file that is truncated meanwhile: one line, no crash, and what was recorded until then" {
  "$build/tests/support/publisher" "$dir/counters" 4 >"$dir/out" 3>&- &
  publisher=$!
  for _ in $(seq 1000); do ! grep -q ready "$dir/out" || break; sleep 0.05; done
  kill -STOP "$publisher" # otherwise the program itself would crash when its file is truncated
  (until [ "$(wc -l <"$dir/run.tsv")" -gt 500 ]; do sleep 0.05; [ -e "$dir" ] || break; done
    truncate -s 0 "$dir/counters") >/dev/null 2>&1 3>&- &
  refused 1 "was truncated while it was read; the rows until then are in $dir/run.tsv" record \
    -p "$publisher" --counters "$dir/counters" --duration 60 --output "$dir/run.tsv"
  kill -KILL "$publisher"
  run --separate-stderr "$kymo" report --json "$dir/run.tsv"
  [ "$status" -eq 0 ]
  [ "$(wc -l <"$dir/run.tsv")" -gt 500 ]
}

@test "wrong usage" {
  refused 2 "-p, or a command" record
  refused 2 "-p, or a command" record -p 1 -- true
  refused 2 "only with -p" record --duration 1 -- true
  refused 2 "--rate-us" record --rate-us 0 -- true
  refused 2 "--pid" record -p -4
}

@test "a command that cannot be run leaves no recording" {
  refused 127 "cannot run no-such-command" record --output "$dir/run.tsv" -- no-such-command
  refused 126 "Permission denied" record --output "$dir/run.tsv" -- /etc/passwd
  [ -z "$(ls -A "$dir")" ]
}

@test "an output that exists, has another ending or no folder" {
  echo precious >"$dir/there.tsv"
  refused 1 "there.tsv" record --output "$dir/there.tsv" -- touch "$dir/ran"
  refused 2 ".tsv" record --output "$dir/run.csv" -- touch "$dir/ran"
  refused 1 "No such file" record --output "$dir/none/run.tsv" -- touch "$dir/ran"
  [ "$(cat "$dir/there.tsv")" = precious ]
  [ ! -e "$dir/ran" ]
}

@test "a process that is not there" {
  refused 1 "No such process" record -p 4194303
}
