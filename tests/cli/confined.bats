#!/usr/bin/env bats
# The verbs that read recordings do it in a process without rights. The recording here says that kymod still
# writes to it. So the reading process waits, and the test can look at it.

bats_require_minimum_version 1.5.0

setup() {
  build="${KYMO_BUILD_DIR:-$BATS_TEST_DIRNAME/../../build/release}"
  kymo="$build/tools/kymo/kymo"
  dir="$BATS_TEST_TMPDIR"
  mkdir "$dir/runs"
  printf 'Time (ns)\ta\n1\t1\n2\t2\n' >"$dir/runs/run.tsv"
  /usr/bin/python3 - "$dir/runs/run.meta.json" $$ <<'END'
import json, os, sys, time
json.dump({"format_version": 1, "state": "running", "host": os.uname().nodename, "pid": int(sys.argv[2]),
           "start_unix_ns": time.time_ns(), "about": {"request": "dump"},
           "columns": [{"name": "a", "metric": "a", "kind": "counter"}]}, open(sys.argv[1], "w"))
END
}

# confined VERB...: runs the verb, and checks that its only child has no rights while it reads.
confined() {
  "$kymo" "$@" >"$dir/out" 2>"$dir/talk" 3>&- &
  local verb=$! reader status
  for _ in $(seq 3000); do
    grep -q "still being written" "$dir/talk" && break
    sleep 0.01
  done
  reader=$(cat "/proc/$verb/task/$verb/children")
  status=$(cat "/proc/${reader// /}/status")
  wait "$verb" || [ "$1" = diff ]  # diff ends with 3, because two rows are too few
  [[ "$status" == *$'NoNewPrivs:\t1'* ]]
  [ -n "${KYMO_SANITIZE:-}" ] || [[ "$status" == *$'Seccomp:\t2'* ]]
  [[ "$status" =~ CapBnd:[[:space:]]+0+$'\n' ]] || [ "$(id -u)" -ne 0 ]
}

@test "report reads without rights, and writes its page" {
  confined report "$dir/runs/run.tsv" --html "$dir/page.html"
  [ -s "$dir/page.html" ]
}

@test "diff reads without rights" {
  confined diff "$dir/runs/run.tsv" "$dir/runs/run.tsv"
}

@test "export reads without rights, and writes its file" {
  confined export "$dir/runs/run.tsv" -o "$dir/out.sqlite"
  [ -s "$dir/out.sqlite" ]
  [ ! -e "$dir/out.sqlite.new" ]
}

@test "a recording and its companions may be links" {
  mkdir "$dir/links"
  printf 'Time (ns)\ta\n1\t1\n2\t2\n' >"$dir/runs/old.tsv"
  echo '{"format_version": 1, "state": "ended", "about": {"job": {"name": "web-1"}},
    "columns": [{"name": "a", "metric": "a"}]}' >"$dir/runs/old.meta.json"
  ln -s "$dir/runs/old.tsv" "$dir/links/old.tsv"
  ln -s "$dir/runs/old.meta.json" "$dir/links/old.meta.json"
  run --separate-stderr "$kymo" report "$dir/links/old.tsv"
  [ "$status" -eq 0 ]
  [ -z "$stderr" ]
  [[ "$output" == *"web-1"* ]]
}

@test "view reads without rights, and shows the recording" {
  "$kymo" view "$dir/runs/run.tsv" >"$dir/out" 2>"$dir/talk" 3>&- &
  local view=$!
  for _ in $(seq 3000); do
    [ ! -s "$dir/out" ] || break
    sleep 0.01
  done
  [[ "$(curl -s "$(cat "$dir/out")")" == *"run.tsv"* ]]
  kill "$view"
  wait "$view"
}

@test "a pipe in place of a recording is refused, one in place of a companion file is ignored, and neither is waited for" {
  mkfifo "$dir/pipe.tsv"
  for verb in report view "export -o $dir/out.csv"; do
    run --separate-stderr timeout 60 "$kymo" $verb "$dir/pipe.tsv"
    [ "$status" -eq 1 ]
    [[ "$stderr" == *"pipe.tsv: it is neither"* ]]
    [ "${#stderr_lines[@]}" -eq 1 ]
  done
  rm "$dir/runs/run.meta.json"
  mkfifo "$dir/runs/run.meta.json" "$dir/runs/run.gaps.tsv"
  run --separate-stderr timeout 60 "$kymo" report "$dir/runs/run.tsv"
  [ "$status" -eq 0 ]
  [[ "$output$stderr" == *"run.meta.json: it is not a regular file"* ]]
  [[ "$output$stderr" == *"run.gaps.tsv: it is not a regular file"* ]]
}

@test "a file that is named by its descriptor is read without rights" {
  rm "$dir/runs/run.meta.json"
  run --separate-stderr "$kymo" report /dev/stdin <"$dir/runs/run.tsv"
  [ "$status" -eq 0 ]
  [[ "$output" == *"/dev/stdin"* ]]
}

# Prints the open descriptors of the verb's child while the child waits to write to a full pipe.
descriptors_of_reader() {
  /usr/bin/python3 - "$kymo" "$@" <<'END'
import fcntl, os, subprocess, sys, termios, array
from time import sleep
out, into = os.pipe()
size = fcntl.fcntl(into, 1031, 4096)  # F_SETPIPE_SZ
verb = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=into, stderr=subprocess.DEVNULL)
os.close(into)
filled = array.array("i", [0])
while filled[0] < size:
    if verb.poll() is not None:
        sys.exit(f"the verb ended: {os.read(out, size)}")
    sleep(0.01)
    fcntl.ioctl(out, termios.FIONREAD, filled)
reader = open(f"/proc/{verb.pid}/task/{verb.pid}/children").read().split()[0]
print(*sorted(int(fd) for fd in os.listdir(f"/proc/{reader}/fd")))
os.close(out)
verb.wait()
END
}

@test "a reader has no open file but its output" {
  [ "$(id -u)" -eq 0 ] || skip "needs root to start kymod"
  "$build/tools/kymod/kymod" --socket "$dir/socket" --state-dir "$dir/state" --criu "${KYMO_TEST_CRIU:-criu}" >"$dir/log" 2>&1 3>&- &
  local kymod=$! long
  for _ in $(seq 3000); do
    [ ! -S "$dir/socket" ] || break
    sleep 0.02
  done
  long="$dir/$(printf 'c%.0s' $(seq 100))"
  mkdir "$long" "$long/recordings"
  /usr/bin/python3 -c 'import json; print(json.dumps({"format_version": 1, "x": "y" * 9000}))' >"$long/checkpoint.json"
  run descriptors_of_reader --socket "$dir/socket" inspect --json "$long"
  inspected="$output"
  mkdir -p "$long/$(printf 'd\x01%.0s' $(seq 100))"/{1,2,3,4,5,6,7,8}
  long="$(echo "$long/d"*)"
  for _ in $(seq 9); do long+="/../${long##*/}"; done
  echo damaged >"$long/pstree.img"
  run descriptors_of_reader --socket "$dir/socket" verify --json "$long"
  kill "$kymod"
  wait "$kymod" || true
  echo "$output"
  [ "$status" -eq 0 ]
  [ "$inspected" = "0 1 2" ]
  [ "$output" = "0 1 2" ]
}
