#!/usr/bin/env bats
# kymo check process: what it prints of real processes, and its exit codes.

load refused

setup() {
  bats_require_minimum_version 1.5.0
  kymo="${KYMO_BUILD_DIR:-$BATS_TEST_DIRNAME/../../build/release}/tools/kymo/kymo"
  dir="$BATS_TEST_TMPDIR"
}

teardown() {
  [ -n "${pid:-}" ] || return 0
  kill -KILL -- "-$pid" 2>/dev/null || true
  wait "$pid" 2>/dev/null || true
}

# start COMMAND...: starts the command in a session of its own, without a terminal, and without the files that this
# test has open. Sets `pid`.
start() {
  setsid /usr/bin/python3 -c 'import os, sys
os.closerange(3, 1024)
os.execv(sys.argv[1], sys.argv[1:])' "$@" </dev/null >"$dir/out" 2>&1 &
  pid=$!
}

# start_python CODE: starts a Python program in the same way, and waits until it prints `ready`.
start_python() {
  start /usr/bin/python3 -uc "$1
print('ready')
import time
time.sleep(600)"
  for _ in $(seq 3000); do
    grep -q ready "$dir/out" && return
    sleep 0.01
  done
  return 1
}

# Uses no kymod. Only the forecast of a dump's time needs one.
check() { run --separate-stderr "$kymo" --socket "$dir/none" check process "$@"; }

@test "a process that can be dumped has four lines and exit code 0" {
  start_python ""
  check "$pid"
  [ "$status" -eq 0 ]
  [ -z "$stderr" ]
  [ "${#lines[@]}" -eq 4 ]
  [ "${lines[0]}" = "checked: a dump of process $pid" ]
  [[ "${lines[1]}" =~ ^"to write: about "[0-9.]+" MiB of memory of 1 process"$ ]]
  [[ "${lines[2]}" == "forecast: not known: connect to kymod at $dir/none"* ]]
  [ "${lines[3]}" = "nothing found that makes a dump fail" ]
}

@test "a finding that refuses has one line with evidence, remedy and id, and exit code 1" {
  start_python "import os
file = open('$dir/cache', 'wb', buffering=0)
file.write(bytes(3 << 20))
os.unlink('$dir/cache')"
  check "$pid"
  [ "$status" -eq 1 ]
  [ -z "$stderr" ]
  [ "${#lines[@]}" -eq 5 ]
  # The size on the disk includes the blocks with which the file system finds the data.
  [ "${lines[1]/, 30[7-9]? KiB/, 3072 KiB}" = "refuses: a deleted file that is still in use is larger than CRIU copies (1024 KiB) (process $pid python3, descriptor 3, $dir/cache (deleted), 3072 KiB). Pass --ghost-limit 4M (for a container instead: the line ghost-limit 4M in /etc/criu/runc.conf). (failure ghost-big)" ]
  [ "${lines[4]}" = "1 finding makes the dump fail" ]
}

@test "findings that an option of the dump solves are left out" {
  start_python "import socket
server = socket.create_server(('127.0.0.1', 0))
client = socket.create_connection(server.getsockname())
accepted = server.accept()"
  check "$pid"
  [ "$status" -eq 1 ]
  [[ "$output" == *"(failure tcp-established)"* ]]
  check "$pid" --tcp-established
  [ "$status" -eq 0 ]
  [[ "$output" != *"(failure"* ]]
}

@test "a warning alone is no failure, and the last line counts it" {
  start_python "import os
ends = os.pipe2(os.O_DIRECT)"
  check "$pid"
  [ "$status" -eq 0 ]
  [[ "${lines[1]}" == "warns: a pipe is in packet mode"*"(failure pipe-packet)" ]]
  [ "${lines[4]}" = "nothing found that makes a dump fail; 1 finding may" ]
}

@test "JSON has the same" {
  start_python "import os
ends = os.pipe2(os.O_DIRECT)"
  check --json "$pid"
  [ "$status" -eq 0 ]
  python3 - "$output" "$pid" <<'END'
import json, sys
report = json.loads(sys.argv[1])
assert report["pid"] == int(sys.argv[2]) and report["refusing"] == 0, report
finding = report["findings"][0]
assert (finding["grade"], finding["failure"]) == ("warns", "pipe-packet"), finding
assert finding["places"][0]["fd"] >= 3, finding
END
}

@test "control codes in names of processes do not reach the terminal" {
  start_python "import ctypes, os
ctypes.CDLL(None).prctl(15, b'\033[31mred')
ends = os.pipe2(os.O_DIRECT)"
  check "$pid"
  [ "$status" -eq 0 ]
  [[ "$output" == *"?[31mred"* ]]
  [[ "$output" != *$'\e'* ]]
}

@test "an argument that is no process is refused with one line" {
  refused 1 "there is no process 99999999" check process 99999999
  refused 1 "a pid is a number above 0" check process 0
  refused 1 "it is init" check process 1
  refused 1 "$dir/none" --socket "$dir/none" check process web
  refused 2 "target" check process
}

@test "a folder that is no checkpoint is refused with one line, and so is a damaged one" {
  mkdir "$dir/empty" "$dir/images"
  refused 1 "$dir/empty" check "$dir/empty"
  echo nothing >"$dir/images/inventory.img"
  run --separate-stderr "$kymo" check "$dir/images" --criu /none
  [ "$status" -eq 1 ]
  [ "${lines[0]}" = "checked: a restore of $dir/images" ]
  [[ "${lines[1]}" == "refuses: the images are missing, damaged or of another CRIU ("*"inventory.img"*"(failure images-broken)" ]]
  [[ "$output" == *"not seen: the version of CRIU: it was not found"* ]]
}

@test "for another user's process it says what it cannot see, and exits with 3" {
  [ "$(id -u)" -eq 0 ] || skip "only root can become another user"
  start_python ""
  run --separate-stderr setpriv --reuid 65534 --regid 65534 --clear-groups "$kymo" check process "$pid"
  [ "$status" -eq 3 ]
  [ "${lines[1]}" = "not seen: open files, memory and namespaces of process $pid python3: permission denied, look as the same user or as root" ]
  [ "${lines[4]}" = "nothing found that makes a dump fail; not all could be seen" ]
}

@test "help says what it does and what the exit codes are" {
  run --separate-stderr "$kymo" check process --help
  [ "$status" -eq 0 ]
  [[ "$output" == *"without stopping them"* ]]
  [[ "$output" == *"--tcp-established"* ]]
  [[ "$output" == *"Exit code: 0"* ]]
}

@test "the page has every check, and no other" {
  page="$BATS_TEST_DIRNAME/../../docs/preflight.md"
  sources="$BATS_TEST_DIRNAME/../../src/checkpoint/preflight"
  ids() { sort -u; }
  diff <(sed -n '/^## What is looked for/,/^## What a restore/s/^|//p' "$page" | grep -o '`[a-z][a-z-]*`' | tr -d '`' | ids) \
    <(python3 - "$sources" "$sources/../failures/catalogue.json" <<'END' | ids
import json, pathlib, re, sys
known = {entry["id"] for entry in json.load(open(sys.argv[2]))}
text = "".join(path.read_text() for path in pathlib.Path(sys.argv[1]).glob("*.*"))
for word in re.findall(r'"([a-z0-9-]+)"', text):
    if word in known and word != "disk-full":  # no matter of the processes
        print(word)
END
)
}

@test "the page has every check of a restore, and no other" {
  python3 - "$BATS_TEST_DIRNAME/../.." <<'END'
import json, pathlib, re, sys
root = pathlib.Path(sys.argv[1])
known = {entry["id"] for entry in json.loads((root / "src/checkpoint/failures/catalogue.json").read_text())}
page = (root / "docs/preflight.md").read_text().split("## Before a restore")[1]
rows = {word for row in re.findall(r"^\| (`.*?) \|", page, re.M) for word in re.findall("`(.*?)`", row)}
source = "".join((root / name).read_text() for name in ["src/checkpoint/runtimes/shared/restore_checks.cc", "src/checkpoint/preflight/host_names.cc"])
checks = {word for word in re.findall(r'"([a-z0-9-]+)"', source) if word in known}
assert rows == checks, rows ^ checks
END
}
