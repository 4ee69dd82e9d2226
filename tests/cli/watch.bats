#!/usr/bin/env bats
# kymo watch of a ring and of a process, on a terminal and in a pipe. Bad input gets one clear line.

bats_require_minimum_version 1.5.0
load refused

setup() {
  build="${KYMO_BUILD_DIR:-$BATS_TEST_DIRNAME/../../build/release}"
  kymo="$build/tools/kymo/kymo"
  dir="$BATS_TEST_TMPDIR/run"
  mkdir "$dir"
}

teardown() {
  [ -z "${publisher:-}" ] || kill -KILL "$publisher"
}

# Starts a program that publishes its counters, and sets $publisher to its pid.
start_publisher() {
  "$build/tests/support/publisher" "$dir/counters" 4 >"$dir/out" 3>&- &
  publisher=$!
  for _ in $(seq 1000); do
    ! grep -q ready "$dir/out" || return 0
    sleep 0.05
  done
  return 1
}

# Runs a command and also writes its output to $dir/seen.
seen() (
  set -o pipefail
  "$@" | tee "$dir/seen"
)

# when_seen PATTERN LINES COMMAND...: runs the command as soon as $dir/seen has this many lines that match the
# pattern.
when_seen() {
  rm -f "$dir/seen"
  {
    for _ in $(seq 1000); do
      found=$(grep -c "$1" "$dir/seen") || found=0
      [ "$found" -lt "$2" ] || break
      sleep 0.05
    done
    shift 2
    "$@"
  } >/dev/null 2>&1 3>&- &
}

# Runs a command that interrupt() can end.
interruptible() {
  timeout --foreground 60 sh -c 'echo $$ >"$0"; exec "$@"' "$dir/pid" "$@"
}
interrupt() {
  kill -INT "$(<"$dir/pid")"
}

@test "a process, once: a table with rates" {
  start_publisher
  run --separate-stderr "$kymo" watch --once -p "$publisher"
  [ "$status" -eq 0 ]
  [ -z "$stderr" ]
  [[ "${lines[0]}" == *COLUMN*"PER SECOND"* ]]
  [[ "$output" =~ ticks\ +[0-9,]+\ +[1-9] ]]
  [[ "$output" =~ "steps[down]"\ +8,000\ +0 ]]
}

@test "in a pipe: a line for each refresh, and Ctrl-C ends it" {
  start_publisher
  when_seen ticks= 2 interrupt
  run --separate-stderr seen interruptible "$kymo" watch -p "$publisher"
  [ "$status" -eq 0 ]
  [ "${#lines[@]}" -ge 2 ]
  [[ "${lines[1]}" =~ ms\ \ ticks=[0-9]+$ ]]
  [[ "$output" != *$'\e'* ]]
}

@test "JSON, a line for each refresh, until the process ends" {
  start_publisher
  when_seen '"ticks"' 2 kill -KILL "$publisher"
  run --separate-stderr seen timeout 60 "$kymo" watch --json -p "$publisher"
  publisher=
  [ "$status" -eq 0 ]
  [[ "$stderr" == *"has ended"* ]]
  printf '%s\n' "${lines[@]}" | /usr/bin/python3 -c '
import json, sys
rows = [json.loads(line) for line in sys.stdin]
assert len(rows) >= 2 and rows[-1]["ended"] and not rows[0]["ended"]
assert rows[1]["columns"]["ticks"]["per_second"] > 10
assert rows[0]["columns"]["ticks"]["value"] < rows[1]["columns"]["ticks"]["value"]
'
}

@test "on a terminal it redraws, without colour where that is not wanted, and leaves the screen as it was" {
  start_publisher
  export -f interruptible
  export dir
  when_seen ticks 1 interrupt
  run env NO_COLOR=1 SHELL=/bin/bash script -qefc "interruptible $kymo watch -p $publisher" "$dir/seen"
  [[ "$output" == *$'\e[?1049h'* ]]
  [[ "$output" == *$'\e[?1049l'* ]]
  [[ "$output" != *$'\e[1m'* ]]
  when_seen ticks 1 interrupt
  run env -u NO_COLOR SHELL=/bin/bash script -qefc "interruptible $kymo watch -p $publisher" "$dir/seen"
  [[ "$output" == *$'\e[1m'* ]]
}

@test "the ring of a killed recorder: its newest row, with a note that it is the last one" {
  "$build/tests/recorder/sampling/leave_ring" "$dir/ring" "$dir/run.tsv"
  run --separate-stderr "$kymo" watch --json "$dir/ring"
  [ "$status" -eq 0 ]
  [ "${#lines[@]}" -eq 1 ]
  [[ "$output" == *'"steps":{"unit":"count","value":2}'* ]]
  [[ "$stderr" == *"has ended"* ]]
  [ -e "$dir/ring" ]
}

@test "a counter file that is truncated meanwhile: one line, no crash" {
  start_publisher
  kill -STOP "$publisher" # otherwise the program itself would crash when its file is truncated
  when_seen '{' 1 truncate -s 0 "$dir/counters"
  run --separate-stderr seen timeout 60 "$kymo" watch --json -p "$publisher"
  [ "$status" -eq 1 ]
  [ "${#lines[@]}" -ge 1 ]
  [ "$stderr" = "kymo: the file of process $publisher was truncated while it was watched" ]
}

@test "a ring that is truncated meanwhile: one line, no crash, and the terminal as it was" {
  "$build/tests/recorder/sampling/kymo-test-recorder" "$dir/run.tsv" "$dir/ring" >/dev/null 2>&1 3>&- &
  publisher=$!
  for _ in $(seq 1000); do [ ! -s "$dir/ring" ] || break; sleep 0.05; done
  when_seen . 1 truncate -s 0 "$dir/ring"
  run --separate-stderr seen timeout 60 "$kymo" watch "$dir/ring"
  publisher= # it has crashed, because its ring was truncated
  [ "$status" -eq 1 ]
  [ "$stderr" = "kymo: the ring $dir/ring was truncated while it was watched" ]

  "$build/tests/recorder/sampling/kymo-test-recorder" "$dir/run2.tsv" "$dir/ring2" >/dev/null 2>&1 3>&- &
  for _ in $(seq 1000); do [ ! -s "$dir/ring2" ] || break; sleep 0.05; done
  when_seen $'\e\\[?1049h' 1 truncate -s 0 "$dir/ring2"
  run script -qefc "timeout --foreground 20 $kymo watch $dir/ring2" "$dir/seen"
  [ "$status" -eq 1 ]
  [[ "$output" == *$'\e[?25h\e[?1049lkymo: the ring '*'was truncated'* ]]
}

@test "processes and rings that cannot be watched" {
  refused 1 "No such file" watch "$dir/ring"
  echo "a letter" >"$dir/ring"
  refused 1 "is not a ring" watch "$dir/ring"
  refused 1 "no process" watch -p 4194303
  refused 2 "not both" watch "$dir/ring" -p $$
  refused 1 "start kymod" watch --socket "$dir/none"
}

@test "a process that publishes nothing: what the kernel knows of it and of the machine" {
  sh -c 'while :; do :; done' >/dev/null 2>&1 3>&- &
  publisher=$!
  when_seen '"target_cpu_ns"' 8 interrupt
  seen interruptible "$kymo" watch -p "$publisher" --json
  /usr/bin/python3 - "$dir/seen" <<'END'
import json, sys
rows = [json.loads(line)["columns"] for line in open(sys.argv[1])]
assert rows[-1]["target_cpu_ns"]["value"] > rows[0]["target_cpu_ns"]["value"]
assert rows[-1]["target_running"]["value"] == 1
assert rows[-1]["target_resident_bytes"]["value"] > 0
assert rows[-1]["machine_cpu_ns"]["value"] > 0
END
}
