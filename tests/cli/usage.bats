#!/usr/bin/env bats
# How kymo and kymod respond to wrong usage: one clear line on stderr, exit code 2, nothing on stdout.

setup() {
  bats_require_minimum_version 1.5.0
  build="${KYMO_BUILD_DIR:-$BATS_TEST_DIRNAME/../../build/release}"
  kymo="$build/tools/kymo/kymo"
  kymod="$build/tools/kymod/kymod"
  unset KYMO_SOCKET KYMO_HTTP KYMO_STATE_DIR KYMO_CRIU KYMO_CONFIG KYMOD_CONFIG KYMO_PROFILING
  unset "${!KYMO_PROFILING_@}"
}

# refused EXIT_CODE WORD COMMAND...: COMMAND must exit with EXIT_CODE and print one line on stderr, which has WORD.
refused() {
  local code="$1" word="$2"
  shift 2
  run --separate-stderr "$@"
  echo "exit $status, stdout: $output, stderr: $stderr"
  [ "$status" -eq "$code" ]
  [ -z "$output" ]
  [ "$(wc -l <<<"$stderr")" -eq 1 ]
  [[ "$stderr" == *"$word"* ]]
}

@test "both know their version, the same" {
  run "$kymo" --version
  [ "$status" -eq 0 ]
  [[ "$output" =~ ^kymo\ [0-9]+\.[0-9]+\.[0-9]+$ ]]
  version="${output#kymo }"
  run "$kymod" --version
  [ "$status" -eq 0 ]
  [ "$output" = "kymod $version" ]
}

@test "help goes to stdout and names every verb" {
  run --separate-stderr "$kymo" --help
  [ "$status" -eq 0 ]
  for verb in run dump restore ps attach kill checkpoints inspect explain verify delete history metrics report record profile recorder recover watch; do
    [[ "$output" == *"$verb"* ]]
  done
  run --separate-stderr "$kymod" --help
  [ "$status" -eq 0 ]
  [[ "$output" == *--profiling-metrics-rate-us* ]]
}

@test "no verb, an unknown one, and verbs without their argument" {
  refused 2 "no command is given (see kymo --help)" "$kymo"
  refused 2 "there is no command frobnicate (see kymo --help)" "$kymo" frobnicate
  refused 2 "there is no command dumb; did you mean dump?" "$kymo" dumb process 1
  refused 2 "kymo: dump: choose one of process, runc, podman, containerd or docker: type kymo dump process ..." "$kymo" dump
  refused 2 "kymo: dump process: target is missing: type kymo dump process TARGET (see kymo dump process --help)" "$kymo" dump process
  refused 2 "directory" "$kymo" restore process
  refused 2 "command" "$kymo" run process
  refused 2 "kymo: ps: there is no option --bogus (see kymo ps --help)" "$kymo" ps --bogus
  refused 2 "there is no option --verison; did you mean --version?" "$kymo" --verison
  refused 2 "there is no command ls; did you mean ps?" "$kymo" ls
  refused 2 "there is no command why; did you mean explain?" "$kymo" why history
  refused 2 "there is no command info; did you mean inspect?" "$kymo" info web
  refused 2 "there is no option --timeout; did you mean --deadline?" "$kymo" dump web --timeout 3s
  refused 2 "there is no option --compress; did you mean --compression?" "$kymo" dump web --compress
  refused 2 "history: there is no option --since; did you mean --last?" "$kymo" history web --since 10m
  refused 2 "report: there is no option --since; did you mean --from?" "$kymo" report x.tsv --since 10m
  refused 2 "type kymo --help" "$kymo" help
  refused 2 "there is no option --jsn; did you mean --json?" "$kymo" ps --jsn
  refused 2 "there is no option --leave-runing; did you mean --leave-running?" "$kymo" dump process 1 --leave-runing
  refused 2 "kymo: ps: one argument too many: web" "$kymo" ps web
  refused 2 "kymo: dump process: put -q behind process (see kymo dump process --help)" "$kymo" dump -q process 1
  refused 2 "kymo: dump process: put --dir behind process" "$kymo" dump --dir=/x process 1
  refused 2 "kymo: dump process: put -f behind process" "$kymo" dump -f process
  refused 2 "kymo: ps: put --json behind ps (see kymo ps --help)" "$kymo" --json ps
}

@test "values that are wrong: what is wrong with them, and what to type" {
  refused 2 "--deadline: 30 has no unit: give 30s, or use the unit ms, m or h" "$kymo" dump process 1 --deadline 30
  refused 2 "fortnights is not a unit of time: give 30s, 500ms, 5m or 1h" "$kymo" dump process 1 --deadline 3fortnights
  refused 2 "not a time above 0" "$kymo" dump process 1 --deadline=-3s
  refused 2 "soon is not a time: give 30s" "$kymo" dump process 1 --deadline soon
  refused 2 "too long" "$kymo" dump process 1 --deadline 1e300h
  refused 2 "99999" "$kymo" view x.tsv --port=99999
  refused 2 "range 0 to 65535" "$kymo" view x.tsv --port=99999
  refused 2 "--output needs a value" "$kymo" record -o
  refused 2 "--tail: Value x is not a number of at least 0" "$kymo" attach web --tail x
  refused 2 "range 0 to 3600 (see" "$kymo" snapshot --before 5000
  refused 2 "range 0 to 3600 (see" "$kymo" snapshot --before 2h
  refused 2 "weeks is not a unit of time: give 30s, 500ms, 5m or 1h" "$kymo" record -p 1 --duration 2weeks
  refused 2 "not in range 0.001" "$kymo" record -p 1 --duration 0s
  refused 2 "not in range 1 to 19" "$kymo" dump process 1 --compression-level 0
  refused 2 "--from" "$kymo" report x.tsv --from soon
  refused 2 "500ms is not a whole number of seconds: give 30s, 5m or 1h" "$kymod" --criu-timeout 500ms
  refused 2 "range 2 to 3600" "$kymod" --profiles-pull-every 2h
  refused 2 "--rows: Value -1 is not a number of at least 0" "$kymo" diff x.tsv y.tsv --rows -1
  refused 2 "it is a folder" "$kymo" ps --config "$BATS_TEST_TMPDIR"
  refused 2 "kymo: ps: there is no option -x (see kymo ps --help)" "$kymo" ps -x
  refused 2 "there is no option -c; if it is an option of the command, put -- before the command" "$kymo" run process --name x python3 -c pass
  refused 2 "if this is an option of the command, put -- before the command" "$kymo" run process --name x python3 -u -m http.server
  refused 2 "--new is missing" "$kymo" diff --base x.tsv
  refused 2 "no digit first" "$kymo" export x.tsv -o x.om --metric-prefix "1 x"
}

@test "the usual short options" {
  cd "$BATS_TEST_TMPDIR"
  run --separate-stderr "$kymo" record -q -o run.tsv -- true
  [ "$status" -eq 0 ]
  [ -z "$output$stderr" ]
  run --separate-stderr "$kymo" export -q -f csv -o out.txt run.tsv
  [ "$status" -eq 0 ]
  [ -z "$output$stderr" ]
  grep -q '^Time (ns),' out.txt
  # These verbs need kymod. The options are understood, so the error is about the missing kymod.
  refused 1 "start kymod" "$kymo" --socket none dump process 1 -q -v -d there
  refused 1 "start kymod" "$kymo" --socket none restore -q -v there
  refused 1 "start kymod" "$kymo" --socket none run process -q -n web -- true
  refused 1 "start kymod" "$kymo" --socket none ps -a
  refused 1 "start kymod" "$kymo" --socket none dump process 1 -R
}

@test "a target without a kind is a process or a job" {
  refused 1 "start kymod" "$kymo" --socket none dump web
  refused 1 "start kymod" "$kymo" --socket none dump --leave-running web-1
  refused 1 "start kymod" "$kymo" --socket none dump -d there 12
  refused 1 "start kymod" "$kymo" --socket none adopt 12 --name x
  refused 1 "start kymod" "$kymo" --socket none freeze web
  refused 1 "start kymod" "$kymo" --socket none unfreeze web
  refused 1 "start kymod" "$kymo" --socket none run -- podman ps
  refused 1 "start kymod" "$kymo" --socket none run --name x -e A=1 -- true
  refused 2 "run podman: --name is missing" "$kymo" run podman -- alpine
}

@test "the first ten lines of the help are the verbs of every day, and five groups have at most eight" {
  run --separate-stderr "$kymo" --help
  for verb in run dump restore ps check explain history; do
    head -10 <<<"$output" | grep -q "^  $verb "
  done
  groups=$(awk '/^Options:/ { exit } /:$/ { name = $0 } /^  [a-z]+ / { n[name]++ } END { for (g in n) print n[g] }' <<<"$output")
  [ "$(wc -l <<<"$groups")" -eq 5 ]
  for count in $groups; do [ "$count" -le 8 ]; done
}

@test "kymod --help shows at most thirty flags, and --help-all all of them" {
  run --separate-stderr "$kymod" --help
  [ "$(grep -c '^  -' <<<"$output")" -le 30 ]
  [[ "$output" != *--profiling-pace* ]]
  run --separate-stderr "$kymod" --help-all
  [[ "$output" == *--socket*"Advanced options:"*--profiling-pace* ]]
}

@test "kymo dump says that the process ends" {
  run --separate-stderr "$kymo" --help
  [[ "$output" == *"and end it unless --leave-running"* ]]
  run --separate-stderr "$kymo" dump process --help
  [[ "$output" == *"--leave-running"*"Let the process run on (default: it ends"* ]]
}

@test "control codes are made printable in every cell of a table" {
  mkdir -p "$BATS_TEST_TMPDIR/hostile/recordings"
  touch "$BATS_TEST_TMPDIR/hostile/recordings/"$'dump\e[31m.tsv'
  /usr/bin/python3 - "$BATS_TEST_TMPDIR/hostile/checkpoint.json" <<'END'
import json, sys
json.dump({"state": "failed", "error": "\x1b]0;title\x07 and \u202eturned", "timing": {"components": [
    {"name": "step\x1b[2J\u2066", "duration_ns": 900000000}]}}, open(sys.argv[1], "w"))
END
  run --separate-stderr "$kymo" --socket none inspect "$BATS_TEST_TMPDIR/hostile"
  [[ "$output" == *"?]0;title? and ?turned"* ]]
  [[ "$output" == *"step?[2J?"* ]]
  [[ "$output" == *"dump?[31m.tsv"* ]]
  [[ "$output$stderr" != *$'\e'* ]]
  [[ "$output$stderr" != *$'\xe2\x80\xae'* ]]
}

@test "inspect says that checkpoint.json is damaged, or is no file of its own" {
  mkdir -p "$BATS_TEST_TMPDIR/damaged/recordings"
  touch "$BATS_TEST_TMPDIR/damaged/recordings/dump.tsv"
  echo '{"state": "comp' >"$BATS_TEST_TMPDIR/damaged/checkpoint.json"
  run --separate-stderr "$kymo" --socket none inspect "$BATS_TEST_TMPDIR/damaged"
  [ "$status" -eq 1 ]
  [[ "$stderr" == *"checkpoint.json: it is damaged"* ]]
  rm "$BATS_TEST_TMPDIR/damaged/checkpoint.json"
  ln -s /etc/passwd "$BATS_TEST_TMPDIR/damaged/checkpoint.json"
  run --separate-stderr "$kymo" --socket none inspect "$BATS_TEST_TMPDIR/damaged"
  [ "$status" -eq 1 ]
  [[ "$stderr" == *"checkpoint.json"* ]]
}

@test "an empty directory is no checkpoint" {
  mkdir "$BATS_TEST_TMPDIR/empty"
  refused 1 "$BATS_TEST_TMPDIR/empty" "$kymo" --socket none inspect "$BATS_TEST_TMPDIR/empty"
}

@test "a daemon that is not there" {
  refused 1 "start kymod" "$kymo" ps --socket "$BATS_TEST_TMPDIR/none"
  refused 1 "start kymod" env KYMO_SOCKET="$BATS_TEST_TMPDIR/none" "$kymo" metrics
}

@test "a socket that nobody serves" {
  /usr/bin/python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' \
    "$BATS_TEST_TMPDIR/stale"
  refused 1 "no program listens on it" "$kymo" ps --socket "$BATS_TEST_TMPDIR/stale"
}

@test "flags of kymod" {
  common=(--socket "$BATS_TEST_TMPDIR/s" --state-dir "$BATS_TEST_TMPDIR/d" --criu /bin/true)
  refused 2 "at least 1" "$kymod" "${common[@]}" --profiling-metrics-rate-us 0
  refused 2 "did you mean" "$kymod" "${common[@]}" --profiling-metrics frozen_time
  refused 2 "HOST:PORT" "$kymod" "${common[@]}" --http nowhere
  refused 2 "HOST:PORT" env KYMO_HTTP=nowhere "$kymod" "${common[@]}"
  refused 2 "--bogus" "$kymod" "${common[@]}" --bogus
  refused 1 "create it first" "$kymod" "${common[@]}" \
    --profiling-metrics-log "$BATS_TEST_TMPDIR/none/x.tsv"
  [ ! -e "$BATS_TEST_TMPDIR/d" ]
}

@test "sizes of kymod have a unit, in a file, too" {
  common=(--socket "$BATS_TEST_TMPDIR/s" --state-dir "$BATS_TEST_TMPDIR/d" --criu /bin/true)
  refused 2 "--profiling-log-rotate-bytes 419430400: at most half of --profiling-log-keep-bytes 524288000" \
    "$kymod" "${common[@]}" --profiling-metrics-log "$BATS_TEST_TMPDIR/x.tsv" \
    --profiling-log-rotate-bytes 400MiB --profiling-log-keep-bytes 500MiB
  refused 2 "--profiles-keep-bytes 524288: must be at least 1 MiB" "$kymod" "${common[@]}" --profiles-keep-bytes 512KiB
  refused 2 "HOST:PORT" "$kymod" "${common[@]}" --keep-bytes 500MiB --job-output-bytes 500MiB --http nowhere
  for flag in keep-bytes job-output-bytes profiles-keep-bytes profiling-log-rotate-bytes profiling-log-keep-bytes; do
    printf '%s = 500MiB\nhttp = nowhere\n' "$flag" >"$BATS_TEST_TMPDIR/flags"
    refused 2 "HOST:PORT" "$kymod" "${common[@]}" --config "$BATS_TEST_TMPDIR/flags"
  done
}

@test "a file of flags" {
  file="$BATS_TEST_TMPDIR/flags"
  echo "socket = $BATS_TEST_TMPDIR/none" >"$file"
  refused 1 "$BATS_TEST_TMPDIR/none" "$kymo" ps --config "$file"
  refused 1 "$BATS_TEST_TMPDIR/none" env KYMO_CONFIG="$file" "$kymo" ps
  refused 1 "/other" env KYMO_CONFIG="$file" "$kymo" ps --socket /other
  # The command line has priority over the environment, and the environment over the file.
  refused 1 "/of-environment" env KYMO_SOCKET=/of-environment "$kymo" ps --config "$file"
  refused 1 "/other" env KYMO_SOCKET=/of-environment "$kymo" ps --config "$file" --socket /other
  refused 1 "$BATS_TEST_TMPDIR/none" env KYMO_SOCKET= "$kymo" ps --config "$file"
  echo "http = nowhere" >"$file"
  refused 2 "HOST:PORT" "$kymod" --config "$file"
  refused 2 "HOST:PORT" env KYMOD_CONFIG="$file" "$kymod"
  refused 2 "--http of-environment" env KYMO_HTTP=of-environment "$kymod" --config "$file"
  # It said "At Most 1 required but received 2", or took each word for a value.
  for line in 'profiling-rule=frozen_time_us > 500000' 'podman-flags = --runtime runc # why'; do
    printf 'http = nowhere\n%s\n' "$line" >"$file"
    refused 2 "read the config file $file: ${line%%[ =]*}: put quotes around a value with spaces: ${line%%[ =]*}=\"" "$kymod" --config "$file"
  done
  printf '%s\n' 'profiling-rule="frozen_time_us > 500000"' "profiling-rule='pages_written > 5' # two words" '# not = this one' 'http = nowhere' >"$file"
  refused 2 "HOST:PORT" "$kymod" --config "$file"
  echo "soket = x" >"$file"
  refused 2 "soket" "$kymo" ps --config "$file"
  refused 2 "soket" env KYMOD_CONFIG="$file" "$kymod"
  refused 2 "read the config file $file.none: No such file or directory" "$kymo" ps --config "$file.none"
  refused 2 "$file.none" env KYMO_CONFIG="$file.none" "$kymo" ps
  refused 2 "$file.none" env KYMOD_CONFIG="$file.none" "$kymod"
}

@test "how the time is shown" {
  refused 2 "fortnight not in {auto,ns,us,ms,s}" "$kymo" ps --profiling-precision fortnight
  refused 2 "fortnight not in" env KYMO_PROFILING_PRECISION=fortnight "$kymo" ps
  refused 2 "banana" env KYMO_PROFILING=banana "$kymo" ps
  refused 2 "cannot write into" "$kymo" ps --profiling-path "$BATS_TEST_TMPDIR/none/x.json"
  refused 2 "is a folder" "$kymo" ps --profiling-path "$BATS_TEST_TMPDIR"
}

@test "an empty list of metrics prints the choices" {
  run --separate-stderr "$kymod" --profiling-metrics=
  [ "$status" -eq 2 ]
  [ -z "$output" ]
  [[ "$stderr" == *image_written_bytes* ]]
}

# The list has every verb with -q, so that a new one is noticed here. What they print then is tested here, and for
# profiles, profile, report and diff in their own files.
@test "-q prints nothing on stdout, and is on every verb that does or checks something" {
  local quiet="" verb
  for verb in $("$kymo" --help | sed -n 's/^  \([a-z]\+\) .*/\1/p'); do
    if "$kymo" "$verb" --help 2>&1 | grep -q -e "-q,--quiet"; then quiet+="$verb "; fi
  done
  echo "with -q: $quiet"
  [ "$quiet" = "run restore check release kill cancel verify delete record report diff export recover status recorder snapshot profile profiles " ]
  for verb in run "adopt process" release "dump process" "restore process" cancel "freeze process" "unfreeze process" kill \
    verify delete report export check "check process" diff record profile recover recorder snapshot; do
    run --separate-stderr "$kymo" $verb --help
    echo "$verb: $stderr"
    [[ "$output" == *"-q,--quiet"* ]] || { echo "$verb has no -q"; false; }
  done
  run --separate-stderr "$kymo" check -q --criu /nowhere/criu
  [ "$status" -eq 1 ]
  [ -z "$output" ]
  run --separate-stderr "$kymo" check process $$ -q
  [ -z "$output" ]
  mkdir "$BATS_TEST_TMPDIR/nothing"
  run --separate-stderr "$kymo" --socket none verify "$BATS_TEST_TMPDIR/nothing" -q
  [ "$status" -eq 1 ]
  [ -z "$output" ]
  "$build/tests/recorder/sampling/leave_ring" "$BATS_TEST_TMPDIR/ring" "$BATS_TEST_TMPDIR/run.tsv"
  run --separate-stderr "$kymo" recover -q --json "$BATS_TEST_TMPDIR/ring"
  [ "$status" -eq 0 ]
  [ -z "$output$stderr" ]
  refused 2 "use it together with --fail-on-change, --fail-on-increase or --html" "$kymo" diff -q a.tsv b.tsv
}

@test "the help of a dump of a container does not list what its runtime refuses" {
  for verb in dump restore; do
    run --separate-stderr "$kymo" $verb process --help
    [[ "$output" == *--external* && "$output" == *--log-level* ]]
    for kind in runc podman containerd docker; do
      run --separate-stderr "$kymo" $verb $kind --help
      [[ "$output" == *--tcp-established* ]]
      for option in --external --log-level --sync --stream --compression --manage-cgroups; do
        [[ "$output" != *"$option"* ]] || { echo "$verb $kind --help lists $option"; false; }
      done
    done
  done
}
