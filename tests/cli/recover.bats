#!/usr/bin/env bats
# kymo recover: one clear line for each ring that cannot be recovered. No file is changed then.

bats_require_minimum_version 1.5.0
load refused

setup() {
  build="${KYMO_BUILD_DIR:-$BATS_TEST_DIRNAME/../../build/release}"
  kymo="$build/tools/kymo/kymo"
  ring="$BATS_TEST_TMPDIR/ring"
}

# Every test of this file starts with a ring that a killed recorder left.
setup_file() {
  build="${KYMO_BUILD_DIR:-$BATS_TEST_DIRNAME/../../build/release}"
  mkdir "$BATS_FILE_TMPDIR/left"
  "$build/tests/recorder/sampling/leave_ring" "$BATS_FILE_TMPDIR/left/ring" "$BATS_FILE_TMPDIR/left/run.tsv"
}

@test "no ring named, and one that is not there" {
  refused 2 "RING" recover
  refused 1 "No such file" recover "$ring"
}

@test "a file that is no ring" {
  echo "a letter" >"$ring"
  refused 1 "no regular file" recover "$ring"
  head -c 4096 /dev/zero >"$ring"
  refused 1 "does not begin with KYMORING" recover "$ring"
  refused 1 "no regular file" recover "$BATS_TEST_TMPDIR"
}

@test "a ring that is truncated" {
  cp "$BATS_FILE_TMPDIR/left/ring" "$ring"
  truncate -s -8 "$ring"
  refused 1 "is truncated" recover "$ring"
  [ -e "$ring" ]
}

@test "a ring of another version" {
  cp "$BATS_FILE_TMPDIR/left/ring" "$ring"
  printf '\x63' | dd of="$ring" bs=1 seek=8 conv=notrunc status=none
  refused 1 "format_version is 99" recover "$ring"
  [ -e "$ring" ]
}

@test "a ring in use" {
  cp "$BATS_FILE_TMPDIR/left/ring" "$ring"
  exec 8<"$ring"
  flock 8
  refused 1 "in use by process" recover "$ring"
  exec 8<&-
}

@test "an output that exists or that is no recording's name" {
  cp "$BATS_FILE_TMPDIR/left/ring" "$ring"
  refused 1 ".tsv" recover "$ring" --output "$BATS_TEST_TMPDIR/rows.csv"
  touch "$BATS_TEST_TMPDIR/there.tsv"
  refused 1 "there.tsv" recover "$ring" --output "$BATS_TEST_TMPDIR/there.tsv"
  [ ! -s "$BATS_TEST_TMPDIR/there.tsv" ]
  [ -e "$ring" ]
}

@test "rows go into a new recording where asked for, and the ring goes" {
  cp "$BATS_FILE_TMPDIR/left/ring" "$ring"
  run --separate-stderr "$kymo" recover --json "$ring" --output "$BATS_TEST_TMPDIR/rows.tsv"
  [ "$status" -eq 0 ]
  [ -z "$stderr" ]
  [[ "$output" == *'"rows": 3'* ]]
  [ ! -e "$ring" ]
  [ "$(wc -l <"$BATS_TEST_TMPDIR/rows.tsv")" -eq 4 ]
  run "$kymo" report "$BATS_TEST_TMPDIR/rows.tsv"
  [ "$status" -eq 0 ]
}

@test "rows go into the recording that they belong to" {
  run --separate-stderr "$kymo" recover "$BATS_FILE_TMPDIR/left/ring"
  [ "$status" -eq 0 ]
  [[ "$output" == "recovered 3 rows into "*"/run.tsv; the ring "*" is removed" ]]
  [ "$(wc -l <"$BATS_FILE_TMPDIR/left/run.tsv")" -eq 4 ]
}
