#!/usr/bin/env bats
# kymo report: what it prints, and one clear line for each thing that can be wrong.

bats_require_minimum_version 1.5.0
load refused

setup() {
  build="${KYMO_BUILD_DIR:-$BATS_TEST_DIRNAME/../../build/release}"
  kymo="$build/tools/kymo/kymo"
  dir="$BATS_TEST_TMPDIR"
}

# One recording of the real recorder serves every test of this file.
setup_file() {
  build="${KYMO_BUILD_DIR:-$BATS_TEST_DIRNAME/../../build/release}"
  mkdir -p "$BATS_FILE_TMPDIR/checkpoint/recordings"
  "$build/tests/analysis/make_recording" "$BATS_FILE_TMPDIR/checkpoint/recordings/dump.tsv"
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

@test "report --plot draws a PNG and an SVG" {
  "$kymo" report "$(recording)" --plot "$dir/p.png" 2>"$dir/talk"
  [[ "$(cat "$dir/talk")" == "picture written to $dir/p.png" ]]
  [ "$(head -c 4 "$dir/p.png" | tail -c 3)" = PNG ]
  "$kymo" report "$(recording)" --plot "$dir/p.svg"
  grep -q '</svg>' "$dir/p.svg"
  grep -q 'network-lock' "$dir/p.svg"
  [ "$(ls -A "$dir" | grep -c '^p\.')" -eq 2 ]
}

@test "several recordings get a picture each" {
  mkdir "$dir/two"
  for name in dump restore; do
    for end in tsv meta.json gaps.tsv; do
      cp "$(dirname "$(recording)")/dump.$end" "$dir/two/$name.$end"
    done
  done
  "$kymo" report "$dir/two" --plot "$dir/out.png"
  [ -s "$dir/out-dump.png" ]
  [ -s "$dir/out-restore.png" ]
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
@test "a file that is no recording" {
  echo "a,b" >"$dir/c.tsv"
  refused 1 '"a,b", not the header' report "$dir/c.tsv"
}
@test "metadata of a newer version" {
  printf 'Time (ns)\ta\n1\t1\n' >"$dir/n.tsv"
  echo '{"format_version": 2}' >"$dir/n.meta.json"
  refused 1 "format_version 2 is newer than 1" report "$dir/n.tsv"
}
@test "a picture of no known ending" {
  refused 2 ".png or .svg" report "$(recording)" --plot "$dir/p.bmp"
}
@test "no recording named" { refused 2 "RECORDING" report; }
@test "an unknown option" { refused 2 "--colour" report "$(recording)" --colour; }

@test "a picture in a missing folder leaves the report whole and exits 1" {
  run --separate-stderr "$kymo" report "$(recording)" --plot "$dir/none/p.png"
  [ "$status" -eq 1 ]
  [[ "$output" == *"COUNTER"* ]]
  [ "${#stderr_lines[@]}" -eq 1 ]
  [[ "$stderr" == *"none/p.png: No such file"* ]]
}

@test "a missing gnuplot is one clear line" {
  mkdir "$dir/bin"
  run --separate-stderr env PATH="$dir/bin" "$kymo" report "$(recording)" --plot "$dir/p.png"
  [ "$status" -eq 1 ]
  [ "${#stderr_lines[@]}" -eq 1 ]
  [[ "$stderr" == *"install the package gnuplot-nox"* ]]
  [ ! -e "$dir/p.png" ]
}

@test "a gnuplot that fails leaves no half picture and keeps the old one" {
  mkdir "$dir/bin"
  printf '#!/bin/sh\nprintf half\necho "line 7: out of ink" >&2\nexit 3\n' >"$dir/bin/gnuplot"
  chmod +x "$dir/bin/gnuplot"
  echo old >"$dir/p.png"
  PATH="$dir/bin:$PATH" run --separate-stderr "$kymo" report "$(recording)" --plot "$dir/p.png"
  [ "$status" -eq 1 ]
  [[ "$stderr" == *"gnuplot failed: line 7: out of ink"* ]]
  [ "$(cat "$dir/p.png")" = old ]
  [ "$(ls -A "$dir" | grep -c 'p\.png')" -eq 1 ]
}

@test "a full standard output is an error" {
  run --separate-stderr bash -c '"$1" report "$2" >/dev/full' _ "$kymo" "$(recording)"
  [ "$status" -eq 1 ]
  [[ "$stderr" == *"standard output"* ]]
}
