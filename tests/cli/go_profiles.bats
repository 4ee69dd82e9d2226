#!/usr/bin/env bats
# kymo profile --from with the profiles of a Go program whose work is known (tests/profiler/stacks/go/profiles_of_go.go).

bats_require_minimum_version 1.5.0

setup_file() {
  build="${KYMO_BUILD_DIR:-$BATS_TEST_DIRNAME/../../build/release}"
  "$build/tests/profiler/stacks/go/profiles_of_go" "$BATS_FILE_TMPDIR"
}

setup() {
  build="${KYMO_BUILD_DIR:-$BATS_TEST_DIRNAME/../../build/release}"
  kymo="$build/tools/kymo/kymo"
  cd "$BATS_FILE_TMPDIR" || return
  export HOME="$BATS_FILE_TMPDIR"
}

load refused.bash

# value FUNCTION MEMBER: a member of the function in the JSON that is in $output.
value() {
  jq --arg name "$1" --arg member "$2" '.functions[] | select(.function == $name) | .[$member]' <<<"$output"
}

# of_go FILE SAMPLE_INDEX UNIT FUNCTION: prints the own and the total value that `go tool pprof` shows for the
# function.
of_go() {
  go tool pprof -top -nodecount=1000 -nodefraction=0 -unit="$3" -sample_index="$2" "$1" 2>/dev/null |
    awk -v name="$4" '$6 == name { printf "%.0f %.0f", $1, $4 }'
}

@test "of a heap profile, the memory in use is shown" {
  run "$kymo" profile --from heap.pb.gz --json --rows 100
  [ "$status" -eq 0 ]
  [ "$(jq -r '.kind, .unit' <<<"$output" | xargs)" = "heap bytes" ]
  [ "$(value main.keep self_bytes)" -eq $((100 * 8192)) ]
  [ "$(value main.keep self_samples)" -eq 100 ]
  [ -z "$(value main.drop self_bytes)" ] || [ "$(value main.drop self_bytes)" -eq 0 ]
}

@test "with --value alloc, all memory that was allocated; so also of an allocs profile by itself" {
  for file in "--from heap.pb.gz --value alloc" "--from allocs.pb.gz"; do
    # shellcheck disable=SC2086
    run "$kymo" profile $file --json --rows 100
    [ "$status" -eq 0 ]
    [ "$(jq -r .kind <<<"$output")" = alloc ]
    [ "$(value main.drop self_bytes)" -eq $((300 * 4096)) ]
    [ "$(value main.drop self_samples)" -eq 300 ]
    [ "$(value main.keep self_bytes)" -eq $((100 * 8192)) ]
  done
}

@test "goroutines are counted, by the functions that they are in" {
  run "$kymo" profile --from goroutine.pb.gz --json --rows 100
  [ "$(jq -r '.kind, .unit' <<<"$output" | xargs)" = "goroutine count" ]
  [ "$(value main.park total_count)" -eq 5 ]
  [ "$(value main.park total_samples)" -eq 5 ]
  run "$kymo" profile --from goroutine.pb.gz --rows 3
  [[ "$output" == *"main.park"* ]] # found by the total value, because the innermost function is always one of the scheduler
}

@test "delays are times, and all values are those of go tool pprof" {
  for case in "block delay main.wait ns delay" "block delay sync.(*Mutex).Lock ns delay" \
    "mutex delay sync.(*Mutex).Unlock ns delay" "heap heap main.keep B inuse_space" "heap alloc main.drop B alloc_space" \
    "heap alloc main.main B alloc_space" "goroutine goroutine main.park count goroutine"; do
    read -r file kind function unit index <<<"$case"
    run "$kymo" profile --from "$file.pb.gz" --value "$kind" --json --rows 100
    [ "$status" -eq 0 ]
    suffix="${unit/B/bytes}"
    ours="$(value "$function" "self_$suffix") $(value "$function" "total_$suffix")"
    [ "$ours" = "$(of_go "$file.pb.gz" "$index" "$unit" "$function")" ]
  done
  run "$kymo" profile --from block.pb.gz --json --rows 100
  [ "$(value main.wait total_ns)" -ge 100000000 ] # it may begin to wait later than the other goroutine sleeps
}

@test "a sentence says what the values are, and a folded file has them" {
  run "$kymo" profile --from heap.pb.gz -o heap.folded
  [ "$status" -eq 0 ]
  grep -qE '^[0-9.]+ [KM]iB of memory in use in [0-9,]+ objects$' <<<"$output"
  grep -qE 'main\.main;main\.keep 819200$' heap.folded
  run "$kymo" profile --from goroutine.pb.gz
  grep -qE '^[0-9]+ goroutines$' <<<"$output"
}

@test "what is written as pprof is read again as the same, also by Go" {
  "$kymo" profile --from heap.pb.gz --value alloc -o again.pb.gz --quiet
  run "$kymo" profile --from again.pb.gz --json --rows 100
  [ "$(jq -r .kind <<<"$output")" = alloc ]
  [ "$(value main.drop self_bytes)" -eq $((300 * 4096)) ]
  [ "$(of_go again.pb.gz alloc_space B main.drop)" = "$((300 * 4096)) $((300 * 4096))" ]
}

@test "two heap profiles are compared by their bytes" {
  refused 1 "cannot compare: A is a profile of memory in use and B one of allocated memory; give two of the same kind" \
    diff heap.pb.gz allocs.pb.gz
  run "$kymo" diff heap.pb.gz allocs.pb.gz --value heap --json
  [ "$status" -eq 0 ]
  [ "$(jq -r '.kind, .unit, .shares_of' <<<"$output" | xargs)" = "heap bytes bytes" ]
  [ "$(jq '.functions[] | select(.function == "main.keep") | .self.a_bytes' <<<"$output")" -eq $((100 * 8192)) ]
  run "$kymo" diff heap.pb.gz heap.pb.gz
  [[ "$output" == *"none: of objects only the sum is known, not how far they differ"* ]]
}

@test "a value that a file does not have is refused, and the file's own are named" {
  refused 1 "heap.pb.gz has no values of CPU time, but alloc_objects in count, alloc_space in bytes, inuse_objects in" \
    profile --from heap.pb.gz --value cpu
  refused 2 "--value is for --from" profile --value heap -a
  refused 2 "--value is for stack profiles" diff a.tsv b.tsv --value heap
}
