#!/usr/bin/env bats
# kymo profile: what it prints and writes, and one clear line for bad input. tests/profiler/stacks checks the figures against
# known work.

bats_require_minimum_version 1.5.0
load refused

setup() {
  build="${KYMO_BUILD_DIR:-$BATS_TEST_DIRNAME/../../build/release}"
  kymo="$build/tools/kymo/kymo"
  programs="$build/tests/profiler/stacks/programs"
  dir="$BATS_TEST_TMPDIR/run"
  mkdir "$dir"
}

teardown() {
  [ -z "${sleeper-}" ] || kill "$sleeper"
  [ -z "${open_to_all-}" ] || rm -rf "$open_to_all"
}

# profiled ARGUMENT...: runs kymo profile, and skips the test if this machine does not permit taking stacks.
profiled() {
  run --separate-stderr "$kymo" profile "$@"
  echo "exit $status, stdout: $output, stderr: $stderr"
  if [[ "$stderr" == *"cannot take stacks"* ]]; then skip "cannot take stacks here"; fi
}

@test "a command keeps its output and its exit code; the table goes to stderr" {
  profiled -r 999 -- sh -c 'echo hello; exit 7'
  [ "$status" -eq 7 ]
  [ "$output" = hello ]
  [[ "$stderr" == *"of CPU time in"* ]]
}

@test "the table of docs/profiles.md has the same columns and the same lines above" {
  profiled -r 999 --sort total -- "$programs/functions" three /dev/null 300
  [ "$status" -eq 0 ]
  page="$BATS_TEST_DIRNAME/../../docs/profiles.md"
  shape() { sed -E 's/[0-9][0-9.,]* (ns|µs|ms|s)\b/TIME/g; s/[0-9][0-9,.]*/N/g'; }
  shape <"$page" >"$dir/page"
  for line in 0 1; do grep -qxF "    $(shape <<<"${stderr_lines[line]}")" "$dir/page"; done
  heading=$(tr -s ' ' <<<"${stderr_lines[2]}")
  [ "$heading" = " SELF SHARE TOTAL SHARE FUNCTION MODULE" ]
  tr -s ' ' <"$page" | grep -qxF "$heading"
  for name in half third fifth; do grep -qF "::$name()" <<<"$stderr"; done
}

@test "a running process, as JSON, until it ends" {
  "$programs/functions" three /dev/null 1000 3>&- &
  profiled -p $! -r 499 --json --rows 3 --duration 60s
  [ "$status" -eq 0 ]
  /usr/bin/python3 - "$output" <<'END'
import json, sys
profile = json.loads(sys.argv[1])
assert profile["kind"] == "cpu" and profile["format_version"] == 1, profile
assert profile["ns"] == profile["samples"] * profile["period_ns"], profile
assert len(profile["functions"]) == 3, profile
assert all(0 <= f["self_share"] <= f["total_share"] <= 1 for f in profile["functions"]), profile
END
}

@test "a cgroup of either version, and all of the machine" {
  "$programs/functions" three /dev/null 60000 3>&- &
  pid=$!
  for root in /sys/fs/cgroup /sys/fs/cgroup/unified /sys/fs/cgroup/pids; do
    [ -e "$root/cgroup.procs" ] || continue
    mkdir "$root/kymo-test-$$" 2>/dev/null || continue
    if echo "$pid" 2>/dev/null >"$root/kymo-test-$$/cgroup.procs"; then
      run --separate-stderr "$kymo" profile --cgroup "$root/kymo-test-$$" -r 999 -d 500ms --rows 1000
      echo "$pid" >"$root/cgroup.procs"
      result="$status $output $stderr"
    fi
    rmdir "$root/kymo-test-$$"
    echo "$root: $result"
    if [[ "$result" == *"cannot take stacks"* ]]; then break; fi
    [[ "$result" == "0 "*"::half()"* ]]
  done
  run --separate-stderr "$kymo" profile -a -r 999 -d 300ms --rows 1000
  kill -KILL "$pid"
  wait "$pid" || true
  if [[ "$stderr" == *"cannot take stacks"* ]]; then skip "cannot take stacks here"; fi
  [ "$status" -eq 0 ]
  [[ "$output" == *"of CPU time in"* ]]
}

@test "of a process that uses no CPU time: no samples, and a hint" {
  sleep 600 3>&- &
  sleeper=$!
  until [[ "$(cat "/proc/$sleeper/comm")" == sleep && "$(cut -d' ' -f3 "/proc/$sleeper/stat")" == S ]]; do sleep 0.05; done
  profiled -p "$sleeper" --duration 0.5
  code="$status" hint="$stderr"
  [ "$code" -eq 0 ]
  [[ "$output" == *"in 0 samples of"* ]]
  [[ "$hint" == *"kymo: no samples: what was profiled used hardly any CPU time; --off-cpu shows where threads wait"* ]]
  profiled -p "$sleeper" --duration 500ms --off-cpu
  [ "$status" -eq 0 ]
  [[ "$stderr" == *"no samples: no thread began to wait in this time"* ]]
}

@test "names come from a separate debug file of the build id" {
  [ "$(id -u)" -eq 0 ] || skip "needs root to put a file below /usr/lib/debug, in a mount namespace of its own"
  [ -d /usr/lib/debug ] || skip "there is no /usr/lib/debug"
  cp "$programs/inlined" "$dir/stripped"
  objcopy --only-keep-debug "$dir/stripped" "$dir/stripped.debug"
  objcopy --strip-all "$dir/stripped"
  id=$(readelf -n "$dir/stripped" | sed -n 's/.*Build ID: //p')
  [ -n "$id" ]
  profiled -r 999 --rows 1000 -- "$dir/stripped" /dev/null 300
  [ "$status" -eq 0 ]
  [[ "$stderr" != *"shapes::Square::area"* ]] # the stripped program has no names
  # shellcheck disable=SC2016
  run --separate-stderr unshare --mount sh -euc '
    mount -t tmpfs none /usr/lib/debug
    mkdir -p "/usr/lib/debug/.build-id/$2"
    cp "$1/stripped.debug" "/usr/lib/debug/.build-id/$2/$3.debug"
    exec "$4" profile -r 999 --rows 1000 -- "$1/stripped" /dev/null 300' sh "$dir" "${id:0:2}" "${id:2}" "$kymo"
  echo "$stderr"
  [ "$status" -eq 0 ]
  for name in "own_time::burn(unsigned long)" "shapes::Square::area() const" "shapes::innermost<unsigned long>" main; do
    grep -qF "$name" <<<"$stderr"
  done
}

@test "where threads wait" {
  profiled --off-cpu --rows 100 -- "$programs/functions" waits /dev/null 500
  [ "$status" -eq 0 ]
  [[ "$stderr" == *"of waiting in"* ]]
  grep -qE " (\(anonymous namespace\)::)?long_wait" <<<"$stderr"
}

@test "waits that are too short are summed" {
  profiled --off-cpu --shortest-wait 1h -- "$programs/functions" waits /dev/null 100
  [ "$status" -eq 0 ]
  [[ "$stderr" == *"in 0 waits"* ]]
  [[ "$stderr" =~ [1-9][0-9]*" shorter waits, " ]]
}

@test "files" {
  profiled -q -r 999 -o "$dir/x.folded" -- "$programs/functions" three /dev/null 200
  [ "$status" -eq 0 ]
  [ -z "$output$stderr" ]
  grep -qE '^functions;.*;main;.*::half\(\);.* [0-9]+$' "$dir/x.folded"
  "$kymo" profile -q -r 999 -o "$dir/x.pb.gz" -- "$programs/functions" three /dev/null 200
  gzip -t "$dir/x.pb.gz"
}

@test "a flame graph is one page with the stacks and what was profiled" {
  profiled -q -r 999 -o "$dir/x.html" -- "$programs/functions" three /dev/null 200
  if [[ "$stderr" == *"built without its pages"* ]]; then skip "there is no npm"; fi
  [ "$status" -eq 0 ]
  python3 - "$dir/x.html" << 'PYTHON'
import json, re, sys
page = open(sys.argv[1], encoding="utf-8").read()
profile = json.loads(re.search(r'id="profile">(.*?)</script>', page, re.S).group(1))
assert profile["title"].endswith("functions three /dev/null 200"), profile["title"]
tree = profile["tree"]
assert sum(tree["self"]) == profile["samples"], profile["samples"]
path, found = [], set()
for depth, function in zip(tree["depths"], tree["functions"]):
    path = path[:depth] + [profile["functions"][function][0]]
    if "half()" in path[-1]:
        found.add(any(name == "main" for name in path) and path[0] == "functions")
assert found == {True}, found
assert not re.search(r'(src|href)="?https?:', page)
PYTHON
}

@test "profiles that were written are read again, and added" {
  profiled -q -r 999 -o "$dir/x.pb.gz" -- "$programs/functions" three /dev/null 200
  [ "$status" -eq 0 ]
  "$kymo" profile --from "$dir/x.pb.gz" --json --rows 5 > "$dir/one.json"
  "$kymo" profile --from "$dir/x.pb.gz" --from "$dir/x.pb.gz" --json --rows 5 > "$dir/two.json"
  python3 - "$dir/one.json" "$dir/two.json" << 'PYTHON'
import json, sys
one, two = (json.load(open(name)) for name in sys.argv[1:])
assert one["samples"] > 50 and one["kind"] == "cpu", one
assert two["samples"] == 2 * one["samples"] and two["ns"] == 2 * one["ns"], (one, two)
assert [f["function"] for f in one["functions"]] == [f["function"] for f in two["functions"]]
assert any("burn" in f["function"] for f in one["functions"][:1]), one
PYTHON
  run --separate-stderr "$kymo" profile --from "$dir/x.pb.gz"
  [ "$status" -eq 0 ]
  [[ "$output" == *"burn(unsigned long)"* ]]
}

@test "files that are no profile" {
  echo hello > "$dir/text.pb.gz"
  refused 1 "text.pb.gz is no profile of pprof, or is damaged" profile --from "$dir/text.pb.gz"
  head -c 600M /dev/zero | gzip -1 > "$dir/bomb.pb.gz"
  refused 1 "bomb.pb.gz is too large" profile --from "$dir/bomb.pb.gz"
  mkfifo "$dir/pipe.pb.gz"
  refused 1 "pipe.pb.gz" profile --from "$dir/pipe.pb.gz"
  refused 1 "No such file" profile --from "$dir/none.pb.gz"
  refused 2 "name one of" profile --from "$dir/text.pb.gz" -a
}

@test "a phase of a profile that has none, and checkpoints without kymod" {
  profiled -q -r 999 -o "$dir/x.pb.gz" -- "$programs/functions" three /dev/null 100
  refused 1 "the profile is not divided into phases" profile --from "$dir/x.pb.gz" --phase freeze
  refused 2 "--phase is for --from and --checkpoints" profile -a --phase freeze
  refused 2 "name one of" profile --checkpoints job -a
  refused 1 "kymod" profile --checkpoints job --socket "$dir/no-socket"
}

@test "without any right, processes of its own user" {
  [ "$(id -u)" -eq 0 ] || skip "only root may become another user"
  open_to_all=$(mktemp -d /tmp/kymo-test-XXXXXX)
  chmod 755 "$open_to_all"
  cp "$kymo" "$programs/functions" "$open_to_all"
  without_rights=(setpriv --reuid=65534 --regid=65534 --clear-groups --bounding-set=-all)
  paranoid=$(cat /proc/sys/kernel/perf_event_paranoid)
  run --separate-stderr "${without_rights[@]}" "$open_to_all/kymo" profile -r 999 -- "$open_to_all/functions" three /dev/null 300
  echo "$status $output $stderr"
  if [ "$paranoid" -le 2 ]; then
    [ "$status" -eq 0 ]
    [[ "$stderr" == *"::half()"* ]]
  fi
  # This user must not profile the whole machine: one line says so.
  [ "$paranoid" -gt 0 ] || return 0
  run --separate-stderr "${without_rights[@]}" "$open_to_all/kymo" profile -a -d 100ms
  echo "$status $output $stderr"
  [ "$status" -eq 1 ]
  [ "${#stderr_lines[@]}" -eq 1 ]
  [[ "$stderr" == *"CAP_BPF and CAP_PERFMON"* ]]
}

@test "wrong usage" {
  refused 2 "name one of" profile
  refused 2 "name one of" profile -a -- true
  refused 2 "name one of" profile -a -p 1
  refused 2 "range 19 to 999" profile -a -r 5
  refused 2 "range 19 to 999" profile -a -r 1000
  refused 2 "10 has no unit: give 10s" profile -a --off-cpu --shortest-wait 10
  refused 2 "out.svg: give a file that ends in" profile -a -o "$dir/out.svg"
  refused 2 "it is not the folder of a cgroup" profile --cgroup "$dir"
}

@test "what is not there" {
  refused 1 "No such process" profile -p 4194303
  refused 1 "No such file" profile --cgroup "$dir/none"
  refused 1 "No such file" profile -a -o "$dir/none/x.folded"
  refused 1 "start kymod" profile --name web --socket "$dir/none"
  refused 127 "cannot run no-such-command" profile -o "$dir/x.folded" -- no-such-command
  refused 126 "Permission denied" profile -- /etc/passwd
  [ -z "$(ls -A "$dir")" ]
}
