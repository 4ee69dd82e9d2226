#!/usr/bin/env bats
# kymo stats: one clear line for each possible error. Other tests run it on images of a real CRIU.

bats_require_minimum_version 1.5.0

setup() {
  kymo="${KYMO_BUILD_DIR:-$BATS_TEST_DIRNAME/../../build/release}/tools/kymo/kymo"
  dir="$BATS_TEST_TMPDIR"
}

# refused PATTERN ARGUMENT...: kymo must exit with 1, print nothing on stdout, and print one line that matches
# PATTERN on stderr.
refused() {
  run --separate-stderr "$kymo" stats "$1"
  [ "$status" -eq 1 ]
  [ -z "$output" ]
  [ "${#stderr_lines[@]}" -eq 1 ]
  [[ "$stderr" == *"$2"* ]]
}

@test "stats refuses a missing path, a folder without images, and a file that is no archive" {
  refused "$dir/none" "No such file"
  mkdir "$dir/empty"
  refused "$dir/empty" "no CRIU images, statistics or logs in"
  echo text >"$dir/note"
  refused "$dir/note" "neither a folder nor a tar archive"
  mkfifo "$dir/pipe"
  refused "$dir/pipe" "neither a folder nor a regular file"
  refused /dev/zero "neither a folder nor a regular file"
}

@test "stats reports a damaged statistics image and reads the rest" {
  mkdir "$dir/work"
  printf 'rubbish-rubbish' >"$dir/work/stats-dump"
  run --separate-stderr "$kymo" stats "$dir/work"
  [ "$status" -eq 1 ]
  [[ "$output" == *"it is not a CRIU statistics image"* ]]
}

@test "stats of a negative number of mappings is wrong usage" {
  run --separate-stderr "$kymo" stats "$dir" --mappings -1
  [ "$status" -eq 2 ]
}

@test "stats without a path is wrong usage" {
  run --separate-stderr "$kymo" stats
  [ "$status" -eq 2 ]
}
