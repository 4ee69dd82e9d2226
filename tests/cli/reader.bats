#!/usr/bin/env bats
# The small kymo that KYMO_BUILD_TOOLS builds. It reads recordings without gRPC. For each other verb it
# names the program that has it.

bats_require_minimum_version 1.5.0

setup() {
  build="${KYMO_BUILD_DIR:-$BATS_TEST_DIRNAME/../../build/release}"
  kymo="$build/tools/kymo/kymo"
  reader="$build/tools/kymo/reader/kymo"
}

@test "it has nothing of gRPC and CRIU in it" {
  for name in grpc_channel kymo4criu4wire; do
    grep -q $name "$kymo"
    run ! grep -q $name "$reader"
  done
}

@test "it recovers, reports and exports what a killed program left" {
  cd "$BATS_TEST_TMPDIR"
  "$build/tests/recorder/sampling/leave_ring" ring run.tsv
  "$reader" recover ring
  run --separate-stderr "$reader" report run.tsv --html page.html
  echo "$output $stderr"
  [ "$status" -eq 0 ]
  [[ "$output" == *"run.tsv"* ]]
  [ -s page.html ]
  diff <("$kymo" report --json run.tsv) <("$reader" report --json run.tsv)
  "$reader" export run.tsv --output run.csv
  [ -s run.csv ]
}

# Before, it had no diff, although a program that embeds libkymo wants to compare its runs.
@test "it compares recordings, and says which kymo compares checkpoints" {
  cd "$BATS_TEST_TMPDIR"
  for run in a b; do
    printf 'Time (ns)\tn\n' >$run.tsv
    for i in $(seq 0 400); do printf '%d\t%d\n' "$((i * 1000000))" "$((i * i))" >>$run.tsv; done
  done
  diff <("$kymo" diff a.tsv b.tsv) <("$reader" diff a.tsv b.tsv)
  run -3 "$reader" diff --base a.tsv --new b.tsv --fail-on-change 10% --html page.html
  [[ "$output" == *"it has no metadata"* ]]
  [ -s page.html ]
  mkdir one two
  run --separate-stderr "$reader" diff one two
  echo "$output $stderr"
  [ "$status" -eq 1 ]
  [[ "$stderr" == *"cannot compare one with two: not both have a recording"*"KYMO_BUILD_PROGRAMS"* ]]
  for given in "a.tsv missing.tsv" "missing.tsv missing-2.tsv"; do
    # shellcheck disable=SC2086  # two words
    run --separate-stderr "$reader" diff $given
    echo "$stderr"
    [ "$status" -eq 1 ]
    [[ "$stderr" == *"missing.tsv"* && "$stderr" != *gRPC* ]]
  done
}

@test "each verb of the whole kymo is here or says what it needs" {
  verbs=$("$kymo" --help | sed -n 's/^  \([a-z]\+\) .*/\1/p')
  [ "$(wc -w <<<"$verbs")" -gt 30 ]
  here=""
  for verb in $verbs; do
    run --separate-stderr "$reader" "$verb" --help
    if [ "$status" -eq 0 ]; then
      here+=" $verb"
    elif [ "$verb" != view ]; then  # view is a separate program
      echo "$verb: exit $status, $stderr"
      [ "$status" -eq 2 ]
      [ "${#stderr_lines[@]}" -eq 1 ]
      [[ "$stderr" == "kymo: $verb: this kymo was built without gRPC"*"KYMO_BUILD_PROGRAMS"* ]]
    fi
  done
  echo "here: $here"
  [ "$here" = " record report diff export recover" ]
  run "$reader" --help
  [[ "$output" == *"built without gRPC"* ]]
  [[ "$output" != *"  dump "* ]]
}
