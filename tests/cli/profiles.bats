#!/usr/bin/env bats
# kymo profiles: what it prints and writes, and one clear line for bad input. The store is made for the test.
# tests/e2e/kept_profiles_test.cc fills one with a real kymod.

bats_require_minimum_version 1.5.0

setup_file() {
  build="${KYMO_BUILD_DIR:-$BATS_TEST_DIRNAME/../../build/release}"
  "$build/tests/profiler/kept/make_profiles" "$BATS_FILE_TMPDIR/profiles.db"
}

setup() {
  build="${KYMO_BUILD_DIR:-$BATS_TEST_DIRNAME/../../build/release}"
  kymo="$build/tools/kymo/kymo"
  export TZ=UTC KYMO_PROFILES="$BATS_FILE_TMPDIR" KYMO_SOCKET="$BATS_TEST_TMPDIR/none"
  at=(--from "2025-03-04 03:00" --to "2025-03-04 03:10")
}

load refused.bash

@test "the services, the hottest first, and what is kept" {
  run "$kymo" profiles "${at[@]}"
  [ "$status" -eq 0 ]
  [ "${lines[0]}" = "2025-03-04 03:00:00 to 2025-03-04 03:10:00" ]
  [ "$(tr -s ' ' <<<"${lines[1]}")" = "CPU TIME SHARE SAMPLES SERVICE" ]
  [ "$(tr -s ' ' <<<"${lines[2]}")" = " 8 s 78.43 % 800 job:web" ]
  [ "$(tr -s ' ' <<<"${lines[3]}")" = " 2 s 19.61 % 200 process:sh" ]
  [[ "${lines[6]}" == "10 minutes are kept, from 2025-03-04 03:00:00 to 2025-03-04 03:10:00, in "* ]]
}

@test "the functions of a service, named in full, by its name alone, or as the container of a job" {
  for name in web job:web podman:web; do
    run "$kymo" profiles "$name" "${at[@]}"
    [ "$status" -eq 0 ]
    [ "${lines[0]}" = "job:web, 2025-03-04 03:00:00 to 2025-03-04 03:10:00" ]
    [ "${lines[1]}" = "██████████" ]
    [[ "$output" == *"8 s of CPU time in 800 samples of 600 s"* ]]
    grep -qE '^ *6 s +75.00 % +6 s +75.00 % +read +read.so$' <<<"$output"
    grep -qE '^ *0 ns +0.00 % +8 s +100.00 % +main +main.so$' <<<"$output"
  done
}

@test "a part of the time, all services, and JSON" {
  run "$kymo" profiles --all --from "2025-03-04T03:02" --to "2025-03-04 03:04:00" --json
  [ "$status" -eq 0 ]
  [ "$(jq -c '[.type, .service, .profile.samples, (.minutes | length), .profile.functions[0].function]' <<<"$output")" = \
    '["cpu",null,204,2,"read"]' ]
  [ "$(jq '.minutes[0].unix_ns / 1e9' <<<"$output")" = "$(date -d '2025-03-04 03:02' +%s)" ]
  run "$kymo" profiles --json "${at[@]}"
  [ "$(jq -c '[.kept.minutes, .kept.samples, .services[0].service, (.services | length)]' <<<"$output")" = '[10,1020,"job:web",4]' ]
}

@test "a range that was typed to the second: the whole minutes that its numbers are of" {
  at=(--from "2025-03-04 03:02:20" --to "2025-03-04 03:02:25")
  said="2025-03-04 03:02:00 to 2025-03-04 03:03:00"
  run "$kymo" profiles "${at[@]}"
  [ "${lines[0]}" = "$said" ]
  run --separate-stderr "$kymo" profiles web "${at[@]}" --output "$BATS_TEST_TMPDIR/web.html"
  [ "${lines[0]}" = "job:web, $said" ]
  [[ "$output" == *"800 ms of CPU time in 80 samples of 60 s"* ]]
  grep -q "job:web, $said" "$BATS_TEST_TMPDIR/web.html" || [[ "$stderr" == *"built without its pages"* ]]
  run "$kymo" profiles web "${at[@]}" --json
  [ "$(jq '(.to_unix_ns - .from_unix_ns) / 1e9, .profile.duration_ns / 1e9' <<<"$output" | xargs)" = "60 60" ]
  # The minute before, and not seconds of this one, which were refused as an overlap.
  run "$kymo" profiles web "${at[@]}" --compare before --json
  [ "$(jq -r '.a.path, .b.path' <<<"$output")" = "job:web, 2025-03-04 03:01:00 to 2025-03-04 03:02:00
job:web, $said" ]
}

@test "the stacks go into a file of each format, which other programs and kymo profile read" {
  cd "$BATS_TEST_TMPDIR"
  for ending in pb.gz folded html; do
    run --separate-stderr "$kymo" profiles web "${at[@]}" --output "web.$ending" --quiet
    [ "$status" -eq 0 ]
    [ -s "web.$ending" ]
  done
  sort web.folded | cmp - <(printf 'process;main;read 600\nprocess;main;write 200\n')
  grep -q 'job:web, 2025-03-04 03:00:00' web.html
  run "$kymo" profile --from web.pb.gz --json
  [ "$(jq -c '[.samples, .functions[0].function, .functions[0].self_samples]' <<<"$output")" = '[800,"read",600]' ]
}

@test "a file of pprof that kymo profile reads is written again in another format" {
  cd "$BATS_TEST_TMPDIR"
  "$kymo" profiles web "${at[@]}" -q -o web.pb.gz
  "$kymo" profile --from web.pb.gz --output again.folded >out
  sort again.folded | cmp - <(printf 'process;main;read 600\nprocess;main;write 200\n')
  "$kymo" profile --from web.pb.gz --from web.pb.gz --output twice.pb.gz >out
  [ "$("$kymo" profile --from twice.pb.gz --json | jq .samples)" -eq 1600 ]
}

@test "-q prints nothing on stdout, and needs a file to write" {
  for form in "" --json; do
    run --separate-stderr "$kymo" profiles web "${at[@]}" $form -q -o "$BATS_TEST_TMPDIR/quiet.folded"
    [ "$status" -eq 0 ]
    [ -z "$output$stderr" ]
    [ -s "$BATS_TEST_TMPDIR/quiet.folded" ]
  done
  refused 2 "use it together with --output" profiles -q "${at[@]}"
  refused 2 "use it together with --output" profiles web -q "${at[@]}"
  refused 2 "use it together with --output" profiles --all -q "${at[@]}" --compare before
}

@test "a comparison with the time before, and with another time" {
  run "$kymo" profiles web --from "2025-03-04 03:05" --to "2025-03-04 03:10" --compare before --json
  [ "$status" -eq 0 ]
  [ "$(jq -c '[.a.samples, .b.samples, .test, (.functions[0].self.verdict)]' <<<"$output")" = '[400,400,"Fisher","within noise"]' ]
  [ "$(jq -r .a.path <<<"$output")" = "job:web, 2025-03-04 03:00:00 to 2025-03-04 03:05:00" ]
  run "$kymo" profiles --all --from "2025-03-04 03:00" --to "2025-03-04 03:02" --compare "2025-03-04 03:08"
  [ "$status" -eq 0 ]
  [[ "$output" == *"nothing changed beyond noise"* ]]
  refused 1 "job:web, 2025-03-04 02:50:00 to 2025-03-04 03:00:00: there are no samples to compare with" profiles web "${at[@]}" --compare before
  refused 2 "this range overlaps the one that is shown" profiles web "${at[@]}" --compare "2025-03-04 03:05"
  refused 2 "--output and --compare need a service" profiles --compare before
  refused 2 "--compare writes only a flame graph: --output FILE.html" profiles web --compare before -o x.folded
}

@test "a comparison with a file, and with the dump of a checkpoint" {
  cd "$BATS_TEST_TMPDIR"
  "$kymo" profiles web "${at[@]}" -q -o web.pb.gz >/dev/null
  run "$kymo" profiles web "${at[@]}" --compare web.pb.gz
  [ "$status" -eq 0 ]
  [[ "$output" == *"A           web.pb.gz: 8 s of CPU time in 800 samples"*"nothing changed beyond noise"* ]]
  # A comparison wrote no file at all.
  run --separate-stderr "$kymo" profiles web "${at[@]}" --compare web.pb.gz -o both.html
  if [[ "$stderr" != *"built without its pages"* ]]; then
    [ "$status" -eq 0 ]
    [ "$stderr" = "written to both.html" ]
    grep -q 'id="profile"' both.html
  fi
  printf 'process;main;read 100\nprocess;main;write 700\n' >old.folded
  run "$kymo" profiles web "${at[@]}" --compare ./old.folded --json
  [ "$status" -eq 0 ]
  [ "$(jq -c '[.a.path, .a.samples, .b.samples, .test]' <<<"$output")" = '["./old.folded",800,800,"Fisher"]' ]
  [ "$(jq -r '.functions[] | select(.function == "read") | .self.verdict' <<<"$output")" = "share grew" ]
  run "$kymo" profiles web "${at[@]}" --compare old.folded
  grep -qE '^A +old.folded: 800 samples$' <<<"$output"
  mkdir -p checkpoint/recordings
  cp web.pb.gz checkpoint/recordings/dump.pb.gz
  run "$kymo" profiles web "${at[@]}" --compare ./checkpoint
  [ "$status" -eq 0 ]
  [[ "$output" == *"./checkpoint/recordings/dump.pb.gz: 8 s"* ]]
}

@test "a comparison with a file that is missing or damaged" {
  cd "$BATS_TEST_TMPDIR"
  refused 1 "No such file" profiles web "${at[@]}" --compare gone.pb.gz
  refused 1 "No such file" profiles web "${at[@]}" --compare "$PWD"
  echo hello >text.pb.gz
  refused 1 "text.pb.gz is no profile of pprof, or is damaged" profiles web "${at[@]}" --compare text.pb.gz
  printf 'a;b 1\n<html>\n' >text.txt
  refused 1 "text.txt, line 2: this is no stack: give lines such as" profiles web "${at[@]}" --compare text.txt
  refused 2 "soon is not a time" profiles web "${at[@]}" --compare soon
}

@test "names that match no service or several" {
  refused 1 "no service nobody has samples from 2025-03-04" profiles nobody "${at[@]}"
  refused 1 "two is not clear: there are container:two and process:two" profiles two "${at[@]}"
  refused 1 "process:nobody, 2025-03-04 03:00:00 to 2025-03-04 03:10:00: there are no samples" profiles process:nobody "${at[@]}"
  refused 1 "web, waiting, 2025" profiles job:web --off-cpu "${at[@]}"
  refused 1 "sh has no samples of the kind off-cpu from 2025-03-04 03:00:00 to 2025-03-04 03:10:00: name another one (--kind): cpu" profiles sh --off-cpu "${at[@]}"
  run "$kymo" profiles --from "2020-01-01" --to "2020-01-02"
  [[ "$output" == *"no samples in this time"* ]]
}

@test "invalid times, and ranges that end before they begin" {
  refused 2 "soon is not a time: give 30s" profiles --from soon
  refused 2 "2025-13-40 is no instant: give 2h (ago), 15:30" profiles --from 2025-13-40
  refused 2 "25:99 is no instant" profiles --to 25:99
  refused 2 "the range ends before it begins: $(date -d "yesterday 14:03" "+%F %T") to $(date -d "yesterday 12:00" "+%F %T")" \
    profiles --from "yesterday 14:03" --to "yesterday 12:00"
  refused 2 "the range ends before it begins: 2025-03-04 03:10:00 to 2025-03-04 03:00:00" \
    profiles --from "2025-03-04 03:10" --to "2025-03-04 03:00"
  refused 2 "5 has no unit" profiles --from 5
}

@test "output without a service, an unknown ending, and a service beside --all" {
  refused 2 "need a service, or --all" profiles -o x.html
  refused 2 "x.xml: give a file that ends in" profiles web -o x.xml "${at[@]}"
  refused 2 "name a service, or give --all" profiles web --all
  refused 1 "cannot write into /nowhere" profiles web -o /nowhere/x.html "${at[@]}"
}

@test "a user who may not read them" {
  [ "$(id -u)" -eq 0 ] || skip "needs root to become another user"
  run setpriv --reuid 65534 --regid 65534 --clear-groups "$kymo" profiles --directory "$KYMO_PROFILES"
  [ "$status" -eq 1 ]
  [[ "$output" == *"only root and the user who runs kymod may read them"* ]]
}

@test "profiles that another user has made" {
  [ "$(id -u)" -eq 0 ] || skip "needs root to give files away"
  mkdir "$BATS_TEST_TMPDIR/foreign"
  cp "$KYMO_PROFILES/profiles.db" "$BATS_TEST_TMPDIR/foreign/"
  chown 65534 "$BATS_TEST_TMPDIR/foreign/profiles.db"
  refused 1 "foreign/profiles.db: it belongs to uid 65534, who could replace it: to look at foreign profiles, copy" \
    profiles --directory "$BATS_TEST_TMPDIR/foreign"
  chown 0 "$BATS_TEST_TMPDIR/foreign/profiles.db"
  chmod 777 "$BATS_TEST_TMPDIR/foreign"
  refused 1 "foreign: other users may write into it" profiles --directory "$BATS_TEST_TMPDIR/foreign"
}

@test "a folder without profiles, one of another version, a damaged one, and no kymod" {
  refused 1 "no profiles are kept in /nowhere: there is no profiles.db" profiles --directory /nowhere
  mkdir "$BATS_TEST_TMPDIR/later" "$BATS_TEST_TMPDIR/damaged"
  cp "$KYMO_PROFILES/profiles.db" "$BATS_TEST_TMPDIR/later/"
  printf '\377' | dd of="$BATS_TEST_TMPDIR/later/profiles.db" bs=1 seek=63 conv=notrunc status=none # changes user_version
  refused 1 "has format version 255, and this program reads version 3" profiles --directory "$BATS_TEST_TMPDIR/later"
  head -c 9000 /dev/urandom >"$BATS_TEST_TMPDIR/damaged/profiles.db"
  refused 1 "file is not a database" profiles --directory "$BATS_TEST_TMPDIR/damaged"
  unset KYMO_PROFILES
  refused 1 "$KYMO_SOCKET" profiles
}
