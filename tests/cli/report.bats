#!/usr/bin/env bats
# kymo report: what it prints, and one clear line for each possible error.

bats_require_minimum_version 1.5.0
load refused

setup() {
  build="${KYMO_BUILD_DIR:-$BATS_TEST_DIRNAME/../../build/release}"
  kymo="$build/tools/kymo/kymo"
  dir="$BATS_TEST_TMPDIR"
}

# All tests of this file read this recording.
setup_file() {
  build="${KYMO_BUILD_DIR:-$BATS_TEST_DIRNAME/../../build/release}"
  mkdir -p "$BATS_FILE_TMPDIR/checkpoint/recordings"
  "$build/tests/lens/analysis/make_recording" "$BATS_FILE_TMPDIR/checkpoint/recordings/dump.tsv"
}

recording() { echo "$BATS_FILE_TMPDIR/checkpoint/recordings/dump.tsv"; }

@test "report prints a summary with phases, counters, gauges and idle columns" {
  run --separate-stderr "$kymo" report "$(recording)"
  [ "$status" -eq 0 ]
  [ -z "$stderr" ]
  [[ "$output" == *"job churn-1, outcome ok, request dump"* ]]
  [[ "$output" == *"network-lock"* ]]
  [[ "$output" =~ image_written_bytes\ +0\ B\ +15\ MiB\ +15\ MiB ]]
  [[ "$output" =~ phase\ +0\ +0\ +0\ +4 ]]
  [[ "$output" == *"4 columns never changed: criu_calls[dump,ok]"* ]]
}

@test "report --exact prints values as recorded" {
  run --separate-stderr "$kymo" report --exact "$(recording)"
  [ "$status" -eq 0 ]
  [[ "$output" =~ image_written_bytes\ +0\ +15728640\ +15728640 ]]
}

@test "report finds the recordings of a checkpoint" {
  run --separate-stderr "$kymo" report "$BATS_FILE_TMPDIR/checkpoint"
  [ "$status" -eq 0 ]
  [[ "$output" == *"recordings/dump.tsv"* ]]
}

@test "report --json is JSON with exact values" {
  "$kymo" report --json "$(recording)" >"$dir/report.json"
  /usr/bin/python3 - "$dir/report.json" <<'END'
import json, sys
report = json.load(open(sys.argv[1]))
assert report["format_version"] == 1
run, = report["recordings"]
columns = {column["name"]: column for column in run["columns"]}
assert columns["image_written_bytes"]["delta"] == 15728640
assert columns["image_written_bytes"]["highest_rate_per_second"] > 0
assert columns["criu_calls[dump,ok]"]["fields"] == {"call": "dump", "result": "ok"}
assert [phase["name"] for phase in run["phases"]][1] == "pre-dump"
capture = run["capture"]
assert capture["rows"] + sum(capture["missed"].values()) == capture["ticks_due"]
END
}

@test "report --quiet writes the page and prints nothing" {
  run --separate-stderr "$kymo" report -q "$(recording)" --html "$dir/q.html"
  [ "$status" -eq 0 ]
  [ -z "$output$stderr" ]
  [ -s "$dir/q.html" ]
  refused 2 "with --html" report -q "$(recording)"
}

@test "several recordings get a page each" {
  mkdir "$dir/two"
  for name in dump restore; do
    for end in tsv meta.json gaps.tsv; do
      cp "$(dirname "$(recording)")/dump.$end" "$dir/two/$name.$end"
    done
  done
  "$kymo" report "$dir/two" --html "$dir/out.html" 2>"$dir/talk"
  [[ "$(cat "$dir/talk")" == "page written to $dir/out-dump.html"$'\n'"page written to $dir/out-restore.html" ]]
  [ -s "$dir/out-dump.html" ]
  [ -s "$dir/out-restore.html" ]
}

@test "a recording cut in the middle of a row is read, and the report says where" {
  cp "$(recording)" "$dir/cut.tsv"
  truncate -s -3 "$dir/cut.tsv"
  run --separate-stderr "$kymo" report "$dir/cut.tsv"
  [ "$status" -eq 0 ]
  [[ "$output" == *"line $(wc -l <"$dir/cut.tsv" | awk '{print $1 + 1}'): cut short"* ]]
  [[ "$output" == *"cut.meta.json"* ]]
}

@test "no recording there" { refused 1 "$dir/none.tsv" report "$dir/none.tsv"; }
@test "a directory without recordings" { mkdir "$dir/e"; refused 1 "no .tsv file" report "$dir/e"; }
@test "an empty file" { : >"$dir/e.tsv"; refused 1 "empty" report "$dir/e.tsv"; }
@test "a compressed recording that was cut before its header is not called empty" {
  zstd -q "$(recording)" -o "$dir/z.tsv.zst"
  truncate -s 100 "$dir/z.tsv.zst"
  refused 1 "cut short: the file ends in the middle of a compressed frame, before the header was whole" report "$dir/z.tsv.zst"
}
@test "every bad line is reported with its number and what is wrong with it" {
  printf 'Time (ns)\ta\n1\t1\n2\tabc\n3\t18446744073709551616\n4\t1\t1\n5\n\n6\t-1\n7\t18446744073709551615\n3\t1\n8\t' \
    >"$dir/bad.tsv"
  run --separate-stderr "$kymo" report "$dir/bad.tsv"
  [ "$status" -eq 0 ]
  [[ "$output" == *'2 rows of 1 columns'* ]]
  [[ "$output" == *'line 3: value 2, "abc", is not a whole number'* ]]
  [[ "$output" == *'line 4: value 2, "18446744073709551616", is past 2^64 - 1'* ]]
  [[ "$output" == *'line 5: 3 values where the header has 2'* ]]
  [[ "$output" == *'line 6: 1 values where the header has 2'* ]]
  [[ "$output" == *'line 7: an empty line'* ]]
  [[ "$output" == *'line 8: value 2, "-1", is not a whole number'* ]]
  [[ "$output" == *'line 10: its time is before that of the row above'* ]]
  [[ "$output" == *'line 11: cut short'* ]]
  [[ "$output" == *'8 lines could not be read'* ]]
}
@test "a header without rows is a recording of nothing" {
  printf 'Time (ns)\ta\n' >"$dir/h.tsv"
  run --separate-stderr "$kymo" report "$dir/h.tsv"
  [ "$status" -eq 0 ]
  [[ "$output" == *'it holds no rows'* ]]
}
@test "metadata of another run is found because its columns differ" {
  printf 'Time (ns)\ta\n1\t1\n2\t2\n' >"$dir/o.tsv"
  echo '{"format_version": 1, "state": "ended", "columns": [{"name": "b", "metric": "b"}]}' >"$dir/o.meta.json"
  run --separate-stderr "$kymo" report "$dir/o.tsv"
  [ "$status" -eq 0 ]
  [[ "$output" == *'the metadata does not describe "a"'* ]]
  [[ "$output" == *'the metadata describes "b", which the header does not have'* ]]
}
@test "control codes in a name are shown as text" {
  printf 'Time (ns)\t\033[31mred\302\2332J\n1\t1\n2\t2\n' >"$dir/t.tsv"
  run --separate-stderr "$kymo" report "$dir/t.tsv"
  [ "$status" -eq 0 ]
  [[ "$output" == *'?[31mred?2J'* ]]
  [[ "$output" != *$'\033'* ]]
}
@test "a file that is no recording" {
  echo "a,b" >"$dir/c.tsv"
  refused 1 '"a,b", not the header' report "$dir/c.tsv"
}
@test "metadata of a newer version" {
  printf 'Time (ns)\ta\n1\t1\n' >"$dir/n.tsv"
  echo '{"format_version": 2}' >"$dir/n.meta.json"
  refused 1 "format_version 2 is newer than 1" report "$dir/n.tsv"
}
@test "no recording named" { refused 2 "RECORDING" report; }
@test "an unknown option" { refused 2 "--colour" report "$(recording)" --colour; }

@test "a page in a missing folder leaves the report whole and exits 1" {
  run --separate-stderr "$kymo" report "$(recording)" --html "$dir/none/p.html"
  [ "$status" -eq 1 ]
  [[ "$output" == *"COUNTER"* ]]
  [ "${#stderr_lines[@]}" -eq 1 ]
  [[ "$stderr" == *"none/p.html"*"No such file"* ]]
}

@test "a full standard output is an error" {
  run --separate-stderr bash -c '"$1" report "$2" >/dev/full' _ "$kymo" "$(recording)"
  [ "$status" -eq 1 ]
  [[ "$stderr" == *"standard output"* ]]
}

@test "report reads a recording in the annotated format" {
  {
    printf 'META\tcalls\t{"name":"calls","prometheusName":"kymo_calls_total","description":"Calls","cumulative":true}\n'
    printf 'START_TIME\t1700000000000000000\n'
    printf 'Time (ns)\tcalls\n1000020\t1\n2000010\t2\n'
  } >"$dir/gvisor.tsv"
  run --separate-stderr "$kymo" report "$dir/gvisor.tsv"
  [ "$status" -eq 0 ]
  [[ "$output" =~ calls\ +1\ +2\ +1 ]]
  run --separate-stderr "$kymo" report --json "$dir/gvisor.tsv"
  [ "$status" -eq 0 ]
  [[ "$output" == *'"about": {}'* ]]
}

@test "the parts of a recording are one report, and one page" {
  for i in 0 1 2; do
    name="run$([ $i -eq 0 ] || echo ".$i")"
    printf 'Time (ns)\tn\n%s000000\t%s\n%s500000\t%s\n' $((i + 1)) $((10 * i)) $((i + 1)) $((10 * i + 5)) >"$dir/$name.tsv"
    printf 'Start (ns)\tEnd (ns)\tTicks\tCause\n' >"$dir/$name.gaps.tsv"
    previous=$([ $i -eq 0 ] || echo ", \"previous\": \"run$([ $i -eq 1 ] || echo ".$((i - 1))").tsv\"")
    next=$([ $i -eq 2 ] || echo ", \"next\": \"run.$((i + 1)).tsv\"")
    echo "{\"format_version\": 1, \"state\": \"ended\", \"part\": {\"number\": $i$previous$next}, \"interval_ns\": 500000,
      \"stats\": {\"ticks_due\": 2, \"rows_captured\": 2, \"rows_written\": 2},
      \"columns\": [{\"name\": \"n\", \"metric\": \"n\", \"kind\": \"counter\"}]}" >"$dir/$name.meta.json"
  done
  run --separate-stderr "$kymo" report "$dir"/run*.tsv --html "$dir/all.html"
  [ "$status" -eq 0 ]
  [[ "$output" == "recording   $dir/run.tsv and the 2 parts after it, up to $dir/run.2.tsv"* ]]
  [[ "$output" == *"6 rows of 1 columns"*"captured    6 of 6 ticks (100.00 %)"* ]]
  [[ "$output" =~ n\ +0\ +25\ +25 ]]
  [[ "$output" != *"part of a longer recording"* ]]
  [[ "$stderr" == "page written to $dir/all.html" ]]
  [[ "$("$kymo" report --json "$dir")" == *'"parts": ['*"run.1.tsv"* ]]
  run --separate-stderr "$kymo" report "$dir/run.1.tsv"
  [[ "$output" == *"only part 1 of a longer recording"*"kymo report, diff and export read all parts that you name as one"* ]]
}
