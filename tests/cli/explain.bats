#!/usr/bin/env bats
# kymo explain of checkpoints that were written by hand. Other tests explain real checkpoints.

bats_require_minimum_version 1.5.0

setup() {
  kymo="${KYMO_BUILD_DIR:-$BATS_TEST_DIRNAME/../../build/release}/tools/kymo/kymo"
  dir="$BATS_TEST_TMPDIR"
}

explain() { run --separate-stderr "$kymo" --socket none explain "$@"; }

@test "explain prints what kymod found, and the phases with their sums" {
  cat >"$dir/checkpoint.json" <<'END'
{"state": "complete", "verdict": {"lines": ["The process stood still for 1 s.", "\u001b[31mred"]},
 "phases": [{"name": "freeze", "begin_ns": 0, "end_ns": 1000000, "frozen": true},
            {"name": "memory", "begin_ns": 1000000, "end_ns": 4000000, "frozen": true},
            {"name": "freeze", "begin_ns": 4000000, "end_ns": 5000000, "frozen": true}]}
END
  explain "$dir"
  [ "$status" -eq 0 ]
  [[ "${lines[0]}" == *"The process stood still for 1 s."* ]]
  [[ "$output" != *$'\e'* ]]
  [[ "${lines[3]}" =~ freeze\ +2\ ms\ +40.0 ]]
  [[ "${lines[4]}" =~ memory\ +3\ ms\ +60.0 ]]
}

@test "explain of a recording prints what kymod found of that dump or restore" {
  printf 'Time (ns)\tn\n0\t1\n' >"$dir/restore.tsv"
  explain "$dir/restore.tsv"
  [ "$status" -eq 1 ]
  [ "${#stderr_lines[@]}" -eq 1 ]
  cat >"$dir/restore.meta.json" <<'END'
{"format_version": 1, "state": "ended", "about": {"verdict": {"lines": ["The restore took 1 s.", "\u001b[31mred"]},
 "phases": [{"name": "memory: reading pages", "begin_ns": 0, "end_ns": 4000000}]}}
END
  explain "$dir/restore.tsv"
  [ "$status" -eq 0 ]
  [[ "${lines[0]}" == "  The restore took 1 s." ]]
  [[ "${lines[3]}" =~ memory:\ reading\ pages\ +4\ ms\ +100 ]]
  [[ "$output" != *$'\e'* ]]
  explain --json "$dir/restore.tsv"
  [ "$(jq -r '.lines[0]' <<<"$output")" = "The restore took 1 s." ]
  echo '{"format_version": 1, "state": "ended", "about": {"verdict": 7}}' >"$dir/restore.meta.json"
  explain "$dir/restore.tsv"
  [ "$status" -eq 1 ]
  [[ "$stderr" == *"restore.tsv: kymod left no explanation in its metadata"*"kymo report"* ]]
}

@test "explain says that a failed dump failed, and that an empty folder has nothing to explain" {
  echo '{"state": "failed", "error": "no room"}' >"$dir/checkpoint.json"
  explain "$dir"
  [ "$status" -eq 1 ]
  [[ "$stderr" == *"its dump failed: no room"* ]]
  rm "$dir/checkpoint.json"
  explain "$dir"
  [ "$status" -eq 1 ]
  [[ "$stderr" == *"no CRIU images, statistics or logs in"* ]]
}

@test "an empty name is refused in words" {
  explain ""
  [ "$status" -eq 2 ]
  [[ "$stderr" == *"the name is empty"*"give a job, a checkpoint (its directory or id), or a file"* ]]
}

@test "explain reads a log without a recording, and says what is not known" {
  cat >"$dir/dump.log" <<'END'
(00.000000) Version: 4.2.1
(00.040000) Dumping processes (pid: 7 comm: x)
(00.050000) Collecting mappings (pid: 7)
(00.100000) Dumping pages (type: 59 pid: 7)
(00.900000) Unfreezing tasks into 2
(01.000000) Writing stats
END
  explain "$dir"
  [ "$status" -eq 0 ]
  [[ "$output" == *"memory"* ]]
  [[ "$output" == *"kymod did not record this dump"* ]]
  explain --json "$dir"
  [ "$status" -eq 0 ]
  [[ "$output" == *'"evidence"'* ]]
}

@test "explain of hostile JSON falls back on CRIU's files" {
  echo '{"verdict": {"lines": 7}, "phases": "none", "error": []}' >"$dir/checkpoint.json"
  explain "$dir"
  [ "$status" -eq 1 ]
  [ "${#stderr_lines[@]}" -eq 1 ]
}

# Writes the log of a process that has a TCP connection, as CRIU 4.2.1 writes it.
failed_log() {
  cat <<'END'
(00.000000) Version: 4.2.1 (gitid 0)
(00.040000) Dumping processes (pid: 7 comm: x)
(00.050000) Dumping file descriptors (pid: 7)
(00.060000) Error (criu/sk-inet.c:190): inet: Connected TCP socket, consider using --tcp-established option.
(00.061000) Error (criu/cr-dump.c:1700): Dump files (pid: 7) failed with -1
(00.070000) Error (criu/cr-dump.c:2111): Dumping FAILED.
END
}

@test "explain of a log says what failed, why, and what to do" {
  failed_log >"$dir/any.log"
  explain "$dir/any.log"
  [ "$status" -eq 0 ]
  [[ "${lines[0]}" == "A process has an open TCP connection"* ]]
  [[ "$output" == *"Remedy:  Pass --tcp-established"* ]]
  [[ "$output" == *"Failure: tcp-established"* ]]
  [[ "$output" == *"Connected TCP socket"* ]]
  [[ "$output" == *"Log:     $dir/any.log"* ]]
}

@test "explain takes a log from standard input, also as JSON" {
  run --separate-stderr "$kymo" --socket none explain --json - < <(failed_log)
  [ "$status" -eq 0 ]
  [ "$(jq -r .id <<<"$output")" = tcp-established ]
  [ "$(jq -r .log <<<"$output")" = "standard input" ]
}

@test "explain of a folder with a failed dump explains the failure" {
  failed_log >"$dir/dump.log"
  explain "$dir"
  [ "$status" -eq 0 ]
  [[ "$output" == *"Failure: tcp-established"* ]]
}

@test "explain shows the line of an unknown failure, with control characters made visible" {
  printf '(00.1) Error (criu/new.c:1): the flux \033[31mis off\n' >"$dir/any.log"
  explain "$dir/any.log"
  [ "$status" -eq 0 ]
  [[ "$output" == *"Failure: unknown"* ]]
  [[ "$output" == *"the flux"*"is off"* ]]
  [[ "$output" != *$'\e'* ]]
}

@test "explain says of a log without a failure that there is none, and of no log that there is none" {
  printf '(00.1) Dumping finished successfully\n' >"$dir/any.log"
  explain "$dir/any.log"
  [ "$status" -eq 0 ]
  [[ "$output" == "CRIU did not fail: $dir/any.log" ]]
  explain "$dir/none.log"
  [ "$status" -eq 1 ]
  [ "${#stderr_lines[@]}" -eq 1 ]
}

@test "explain says of a text that is no log of CRIU that it is none" {
  printf 'Dear diary,\n' >"$dir/diary.txt"
  explain "$dir/diary.txt"
  [ "$status" -eq 1 ]
  [ "${#stderr_lines[@]}" -eq 1 ]
  [[ "$stderr" == *"no line of it is of a log of CRIU"* ]]
}

@test "explain of a checkpoint says why its last restore failed" {
  mkdir "$dir/work"
  echo '{"state": "complete", "verdict": {"lines": ["The dump was quick."]}}' >"$dir/checkpoint.json"
  printf '(00.1) Dumping finished successfully\n' >"$dir/work/dump.log"
  cat >"$dir/work/restore.log" <<'END'
(00.000000) Version: 4.2.1 (gitid 0)
(00.010000) Reading image tree
(00.020000) Error (criu/cr-restore.c:1237): Can't fork for 27650: File exists
(00.030000) Error (criu/cr-restore.c:2400): Restoring FAILED.
END
  explain "$dir"
  [ "$status" -eq 0 ]
  [[ "${lines[0]}" == "The last restore of this checkpoint failed. A pid of the checkpoint is in use"* ]]
  [[ "$output" == *"Failure: pid-taken"* ]]
  explain --json "$dir"
  [ "$(jq -r .id <<<"$output")" = pid-taken ]
  printf '(00.1) Restore finished successfully. Tasks resumed.\n' >"$dir/work/restore.log"
  explain "$dir"
  [[ "$output" == *"The dump was quick."* ]]
}
