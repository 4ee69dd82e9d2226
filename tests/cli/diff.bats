#!/usr/bin/env bats
# kymo diff of recordings and of stack profiles: what it prints, what it exits with, and one clear line for each thing that can be wrong.

bats_require_minimum_version 1.5.0
load refused

setup_file() {
  build="${KYMO_BUILD_DIR:-$BATS_TEST_DIRNAME/../../build/release}"
  cd "$BATS_FILE_TMPDIR"
  # Two recordings of the same simulated process.
  "$build/tests/lens/analysis/make_recording" first.tsv
  "$build/tests/lens/analysis/make_recording" second.tsv
  mkdir -p checkpoint/recordings
  for name in dump restore; do
    for end in tsv meta.json gaps.tsv; do cp "first.$end" "checkpoint/recordings/$name.$end"; done
  done
  /usr/bin/python3 - <<'END'
import json, random
random.seed(5)
def record(name, step):
    total = 0
    with open(name + ".tsv", "w") as file:
        print("Time (ns)\tn_bytes\tlevel", file=file)
        for row in range(800):
            total += step + random.randrange(200)
            print(row * 1000000, total, 500 + random.randrange(100), sep="\t", file=file)
    columns = [{"name": "n_bytes", "metric": "n_bytes", "kind": "counter", "unit": "bytes"},
               {"name": "level", "metric": "level", "kind": "gauge", "unit": "count"}]
    json.dump({"format_version": 1, "state": "ended", "interval_ns": 1000000, "columns": columns,
               "marks": [{"name": "write", "at_ns": 100000000}]}, open(name + ".meta.json", "w"))
for i in range(5):
    record(f"old-{i}", 1000 + random.randrange(50))
    record(f"new-{i}", 1500 + random.randrange(50))
END
}

setup() {
  build="${KYMO_BUILD_DIR:-$BATS_TEST_DIRNAME/../../build/release}"
  kymo="$build/tools/kymo/kymo"
  dir="$BATS_TEST_TMPDIR"
  cd "$BATS_FILE_TMPDIR"
}

@test "the same process recorded twice has not changed" {
  run --separate-stderr "$kymo" diff first.tsv second.tsv
  [ "$status" -eq 0 ]
  [ -z "$stderr" ]
  [[ "$output" != *"CHANGED"* ]]
  [[ "$output" == *"compared    from request until done"* ]]
  # Of a counter that grows once, a pair has one value on each side: no interval, so no pass.
  run --separate-stderr "$kymo" diff first.tsv second.tsv --fail-on-change 5% --metric pages_written
  [ "$status" -eq 3 ]
  [[ "$output" == *"pages_written"*"not decided: no interval"* ]]
  run --separate-stderr "$kymo" diff old-0.tsv old-1.tsv --fail-on-change 20% --metric level
  [ "$status" -eq 0 ]
  [[ "$output" =~ "LIMIT 20 %"[^$'\n']*"interval, ±5 %".*level.*within.*"no change beyond 20 %: the whole interval of each metric that was judged is within" ]]
}

@test "a counter that grows by half is reported with the size of the change, and fails a build" {
  run --separate-stderr "$kymo" diff old-0.tsv new-0.tsv --fail-on-change 10%
  [ "$status" -eq 1 ]
  [[ "$output" =~ n_bytes\ +1\.[0-9]+\ MiB/s\ +1\.[0-9]+\ MiB/s\ +\+4[0-9]\.[0-9]\ % ]]
  [[ "$output" == *"CHANGE: a metric beyond noise and beyond 10 %: n_bytes"* ]]
  [[ "$output" == *"no change"*"level"* ]]
  run -0 "$kymo" diff old-0.tsv new-0.tsv --fail-on-change 80% --metric n_bytes
  run -0 "$kymo" diff old-0.tsv new-0.tsv
}

@test "sets of recordings are compared run by run" {
  run --separate-stderr "$kymo" diff --base old-?.tsv --new new-?.tsv
  [ "$status" -eq 0 ]
  [[ "$output" == *"A           5 recordings: old-0.tsv,"* ]]
  [[ "$output" =~ n_bytes.*5,\ 5 ]]
  run --separate-stderr "$kymo" diff --base old-0.tsv --base old-1.tsv --new new-0.tsv --new new-1.tsv
  [ "$status" -eq 0 ]
  [[ "$output" == *"too few runs: 2 and 2 of 4"* ]]
}

@test "--align compares one phase, --from and --to count from it" {
  run --separate-stderr "$kymo" diff old-0.tsv new-0.tsv --align write --from 0.1 --to 0.5
  [ "$status" -eq 0 ]
  [[ "$output" == *"from write: 400 ms of A, 400 ms of B"* ]]
  run --separate-stderr "$kymo" diff old-0.tsv new-0.tsv --from -50ms --to 0.5
  [ "$status" -eq 0 ]
  [[ "$output" == *"from write: 550 ms of A"* ]]
}

@test "a column that cannot be compared, because one recording has no metadata, is left out with a reason" {
  cp old-0.tsv "$dir/bare.tsv"
  run --separate-stderr "$kymo" diff new-0.tsv "$dir/bare.tsv"
  [ "$status" -eq 0 ]
  [[ "$output" == *'bare.tsv has another kind or unit of "n_bytes", which no metadata describes: it is left out there'* ]]
  [[ "$output" == *'bare.tsv: read metadata: cannot open '*'bare.meta.json: No such file'* ]]
}

@test "--json says the same" {
  "$kymo" diff old-0.tsv new-0.tsv --json --metric n_bytes >"$dir/diff.json"
  /usr/bin/python3 - "$dir/diff.json" <<'END'
import json, sys
diff = json.load(open(sys.argv[1]))
assert diff["test"] == "Mann-Whitney" and diff["correction"] == "Holm", diff
metric, = diff["metrics"]
assert metric["verdict"] == "changed" and 0.3 < metric["share"] < 0.6, metric
assert metric["shift_low"] < metric["median_shift"] < metric["shift_high"]
END
}

@test "a folder of recordings is a set, a checkpoint is its dump" {
  mkdir "$dir/runs"
  cp first.* "$dir/runs"
  for end in tsv meta.json gaps.tsv; do cp "second.$end" "$dir/runs/again.$end"; done
  run --separate-stderr "$kymo" diff "$dir/runs" checkpoint
  [ "$status" -eq 0 ]
  [[ "$output" == *"2 recordings"* ]]
  [[ "$output" == *"checkpoint/recordings/dump.tsv"* ]]
  run --separate-stderr "$kymo" diff first.tsv checkpoint --recording restore
  [[ "$output" == *"checkpoint/recordings/restore.tsv"* ]]
  run --separate-stderr "$kymo" diff first.tsv checkpoint --recording restore.tsv
  [ "$status" -eq 0 ]
}

@test "The line for CI in docs/jobs.md: *.tsv of a shell also matches the lists of gaps, which are skipped" {
  mkdir "$dir/old" "$dir/new"
  for i in 0 1 2 3 4; do
    for side in old new; do
      "$kymo" record -q -o "$dir/$side/r$i.tsv" -- sh -c 'for i in 1 2 3; do :; done; sleep 0.05'
    done
  done
  [ -e "$dir/old/r1.gaps.tsv" ]
  run --separate-stderr "$kymo" diff --base "$dir"/old/*.tsv --new "$dir"/new/*.tsv
  [ "$status" -eq 0 ]
  [ -z "$stderr" ]
  [[ "$output" == *"A           5 recordings:"* ]]
  run --separate-stderr "$kymo" diff --base "$dir"/old/* --new "$dir"/new/*
  [ "$status" -eq 0 ]
  run --separate-stderr "$kymo" report "$dir"/old/*.tsv
  [ "$status" -eq 0 ]
  [ "$(grep -c '^recording ' <<<"$output")" -eq 5 ]
  run --separate-stderr "$kymo" export "$dir"/old/*.tsv -q -o "$dir/out.csv"
  [ "$status" -eq 0 ]
  [ "$(ls "$dir"/out-*.csv | wc -l)" -eq 5 ]
}

@test "a list of gaps alone is refused, and the error names its recording" {
  refused 1 "give first.tsv" diff first.gaps.tsv second.tsv
  refused 1 "give first.tsv" diff --base first.gaps.tsv --new second.tsv
  refused 1 "give first.tsv" report first.gaps.tsv
  refused 1 "give first.tsv" export first.meta.json -o "$dir/out.csv"
}

# Recordings of a program that does not change. They have eleven counters. Each counter differs a little from run to run.
# unchanged_runs RUNS [ROWS steady]: into the folders old and new. ROWS: of the new ones, 800 if they do not do more work.
# steady: the rate of tree_cpu_ns is the same in each run.
unchanged_runs() {
  mkdir -p old new
  /usr/bin/python3 - "$1" "${2:-800}" ${3:+"$3"} <<'END'
import json, random, sys
random.seed(26)
names = ["tree_cpu_ns"] + [f"steps_{number}" for number in range(10)]
for side in ("old", "new"):
    for run in range(int(sys.argv[1])):
        steps = [random.randrange(1000, 2000) for _ in names]
        if len(sys.argv) > 3: steps[0] = random.randrange(1490, 1510)
        with open(f"{side}/r{run}.tsv", "w") as file:
            print("Time (ns)", *names, sep="\t", file=file)
            rows = 800 if side == "old" else int(sys.argv[2])
            for row in range(rows + run):
                print(row * 1000000, *(row * step for step in steps), sep="\t", file=file)
        columns = [{"name": name, "metric": name, "kind": "counter", "unit": "count"} for name in names]
        json.dump({"format_version": 1, "state": "ended", "interval_ns": 1000000, "columns": columns, "marks": []},
                  open(f"{side}/r{run}.meta.json", "w"))
END
}

line_of_docs() { grep -o "kymo diff --base .* --metric 'tree_cpu_ns total' --fail-on-increase 10% *# .* exit 0" "$BATS_TEST_DIRNAME/../../docs/jobs.md"; }

@test "The line for CI in docs/jobs.md exited with 3 for a program that had not changed" {
  line=$(line_of_docs)
  PATH="$(dirname "$kymo"):$PATH"
  cd "$dir"
  unchanged_runs 4 800 steady
  run bash -c "$line"
  [ "$status" -eq 0 ] || { echo "$output"; false; }
  rm -r old new
  unchanged_runs 4  # they differ by up to a factor of two
  run bash -c "$line"
  [ "$status" -eq 3 ] || { echo "$output"; false; }
  [[ "$output" =~ "tree_cpu_ns total"[^$'\n']*"% to"|"not decided: about "[0-9]+" runs each would" ]]
  rm -r old new
  unchanged_runs 3 800 steady
  run bash -c "$line"
  [ "$status" -eq 3 ] || { echo "$output"; false; }
  [[ "$output" == *"It takes about 4 recordings of each side (here 3 and 3)"* ]]
}

@test "The line for CI in docs/jobs.md passed a program that does 1.5 times the work at the same rates" {
  line=$(line_of_docs)
  PATH="$(dirname "$kymo"):$PATH"
  cd "$dir"
  unchanged_runs 6 1200 steady
  run bash -c "$line"
  echo "$output"
  [ "$status" -eq 1 ]
  [[ "$output" == *"CHANGE: a metric beyond noise and beyond +10 %: tree_cpu_ns total"* ]]
  run "$kymo" diff --base old/*.tsv --new new/*.tsv --fail-on-change 10%
  echo "$output"
  [ "$status" -eq 1 ]
  [[ "$output" == *"length      B is 49."*" % longer than A, beyond noise"* ]]
  [[ "$output" =~ CHANGED\ BEYOND\ NOISE[^$'\n']*$'\n'length\ +80[0-9]\ ms\ +1\.20\ s ]]
  [[ "$output" == *"metrics beyond noise and beyond 10 %: length"* ]]
  # Of a single pair no test is possible. It does not pass either.
  run --separate-stderr "$kymo" diff old/r0.tsv new/r0.tsv --fail-on-change 10% --metric length
  [ "$status" -eq 3 ]
  [[ "$output" == *"length      B is 50."*" % longer than A: not tested (one run on each side)"* ]]
  [[ "$output" == *"CANNOT TELL whether a metric changed beyond noise and beyond 10 %: length"*"It takes about 4 recordings of each side"*"--to SECONDS"* ]]
}

# shared_runs WORK OTHERS: six runs of each side on a busy machine, so their lengths and rates are noise. The new ones do WORK
# times the work. In OTHERS % of its time, something else uses the CPUs of the cgroup and interrupts the program.
shared_runs() {
  mkdir -p old new
  /usr/bin/python3 - "$1" "$2" <<'END'
import json, random, sys
random.seed(27)
work, others = float(sys.argv[1]), float(sys.argv[2])
for side in ("old", "new"):
    for run in range(6):
        rows = random.randrange(600, 1800)
        cpu = (work if side == "new" else 1) * random.uniform(0.99, 1.01) * 500_000_000
        load = (others if side == "new" else 1) * random.uniform(0.99, 1.01) * 900
        names = ["tree_cpu_ns", "tree_involuntary_switches", "cgroup_cpu_ns"]
        with open(f"{side}/r{run}.tsv", "w") as file:
            print("Time (ns)", *names, sep="\t", file=file)
            for row in range(rows):
                part = row / (rows - 1)
                print(row * 1000000, round(cpu * part), round(load * part), round(cpu * part + 1e6 * load * part), sep="\t", file=file)
        columns = [{"name": name, "metric": name, "kind": "counter", "unit": "nanoseconds" if name.endswith("ns") else "count"} for name in names]
        json.dump({"format_version": 1, "state": "ended", "interval_ns": 1000000, "columns": columns, "marks": []},
                  open(f"{side}/r{run}.meta.json", "w"))
END
}

@test "a fifth more work passed if the lengths were noise, because no total was compared" {
  cd "$dir"
  shared_runs 1.2 1
  run "$kymo" diff --base old/*.tsv --new new/*.tsv --fail-on-increase 10%
  echo "$output"
  [ "$status" -eq 1 ]
  [[ "$output" =~ "CHANGE: "[^:]*": tree_cpu_ns total"$ ]]
}

@test "a program that had not changed failed, because others in its cgroup and on its CPUs did more" {
  cd "$dir"
  shared_runs 1 3
  run "$kymo" diff --base old/*.tsv --new new/*.tsv --fail-on-increase 10%
  echo "$output"
  [ "$status" -eq 3 ]  # the lengths and the rates differ too much
  [[ "$output" =~ "tree_cpu_ns total"[^$'\n']*within ]]
  [[ "$output" =~ "cgroup_cpu_ns total (counts others, too)"\ +1\. ]]
  [[ "$output" =~ "Not counted, because other programs change it, too: "[^$'\n']*"cgroup_cpu_ns total" ]]
  run "$kymo" diff --base old/*.tsv --new new/*.tsv --fail-on-increase 10% --metric "tree_cpu_ns total"
  [ "$status" -eq 0 ]
  # Who asks for it gets it.
  run "$kymo" diff --base old/*.tsv --new new/*.tsv --fail-on-increase 10% --metric "cgroup_cpu_ns total"
  [ "$status" -eq 1 ]
}

@test "CI could not tell slower from not compared: both were exit 1" {
  for verdict in "--fail-on-change 10%" "--fail-on-increase 10%"; do
    refused 2 "none.tsv" diff first.tsv none.tsv $verdict
    refused 2 "none.tsv" diff --base first.tsv --new none.tsv $verdict
    refused 2 "no recording has it" diff first.tsv second.tsv --metric nothing $verdict
  done
  printf 'not a header\n' >"$dir/damaged.tsv"
  refused 2 "not the header" diff first.tsv "$dir/damaged.tsv" --fail-on-change 10%
  run --separate-stderr "$kymo" diff --base old-?.tsv --new new-?.tsv --fail-on-change 10% --html "$dir/none/x.html"
  [ "$status" -eq 2 ]
  stacks "$dir/one.pb.gz" cpu '1\tmain'
  refused 2 "No such file" diff "$dir/one.pb.gz" "$dir/none.pb.gz" --fail-on-change 10%
  refused 2 "start kymod" history job --fail-on-regression 10% --socket "$dir/none"
}

@test "with too few runs CI does not pass: exit 3, and the number of runs that is needed" {
  run --separate-stderr "$kymo" diff --base old-[0-3].tsv --new new-[0-3].tsv --fail-on-change 10%
  [ "$status" -eq 3 ]
  [[ "$output" == *"CANNOT TELL whether a metric changed beyond noise and beyond 10 %: n_bytes"* ]]
  [[ "$output" == *"It takes about 5 recordings of each side (here 4 and 4), or fewer for a single metric: --metric NAME"* ]]
  run -1 "$kymo" diff --base old-?.tsv --new new-?.tsv --fail-on-change 10%
  run -1 "$kymo" diff --base old-[0-3].tsv --new new-[0-3].tsv --fail-on-change 10% --metric n_bytes
  run -0 "$kymo" diff --base old-[0-3].tsv --new new-[0-3].tsv --fail-on-change 10% --metric level
}

@test "what was not compared passed: a total of one side only, of too few runs, or recordings without metadata" {
  cd "$dir"
  shared_runs 1 1
  sed -i "s/tree_involuntary_switches/errors/" old/*  # only the old ones have `errors`
  asked=(--metric "tree_cpu_ns total" --fail-on-increase 10%)
  run -0 "$kymo" diff --base old --new new "${asked[@]}"
  for sides in "--base old --new new" "--base new --new old" "old/r0.tsv new/r0.tsv"; do
    run -3 "$kymo" diff $sides --metric "errors total" "${asked[@]}"
    [[ "$output" =~ "errors total"[^$'\n']*"only "[AB]" has it".*"CANNOT TELL whether "[^$'\n']*"errors total" ]]
  done
  # One or two runs of each side have no interval, not even if nothing differs.
  for end in tsv meta.json; do tee same-{1..4}.$end <old/r0.$end >/dev/null; done
  for sides in "old/r0.tsv new/r0.tsv --margin 20%" "--base same-1.tsv same-2.tsv --new same-3.tsv same-4.tsv"; do
    run -3 "$kymo" diff $sides "${asked[@]}"
    [[ "$output" == *"not decided: no interval"*"It takes about 4 recordings of each side"* ]]
  done
  rm new/r3.meta.json  # nobody knows whether it is whole
  run -3 "$kymo" diff --base old --new new "${asked[@]}"
  [[ "$output" == *"CANNOT TELL: these recordings do not hold all that happened"*"new/r3.tsv: it has no metadata"* ]]
}

# unfinished NAME PID: makes NAME from old-0.tsv as the unfinished recording of a request, by a recorder with this pid.
unfinished() {
  cp old-0.tsv "$dir/$1.tsv"
  /usr/bin/python3 - old-0.meta.json "$dir/$1.meta.json" "$2" <<'END'
import json, os, sys, time
metadata = json.load(open(sys.argv[1]))
metadata |= {"state": "running", "host": os.uname().nodename, "pid": int(sys.argv[3]),
             "start_unix_ns": time.time_ns(), "about": {"request": "dump"}}
json.dump(metadata, open(sys.argv[2], "w"))
END
}

@test "a recording that kymod is about to finish is waited for" {
  unfinished run $$
  cp old-0.meta.json "$dir/run.meta.new"
  : >"$dir/said"
  # The recording is finished only after kymo has said that it waits.
  (while [ -e "$dir/said" ] && [ ! -s "$dir/said" ]; do sleep 0.02; done; mv "$dir/run.meta.new" "$dir/run.meta.json") 3>&- &
  run bash -c '"$@" 2>"$0"' "$dir/said" "$kymo" diff old-1.tsv "$dir/run.tsv" --fail-on-change 50% --metric n_bytes
  [ "$status" -eq 0 ]
  [ "$(<"$dir/said")" = "kymo: $dir/run.tsv: still being written, waiting up to 3 s" ]
  [[ "$output" != *unfinished* ]]
}

@test "a recording that stays unfinished gets a warning, and one of a recorder that has ended is not waited for" {
  unfinished run $$
  run --separate-stderr "$kymo" diff old-1.tsv "$dir/run.tsv"
  [ "$status" -eq 0 ]
  [[ "$stderr" == *"still unfinished"* ]]
  [[ "$output" == "note        $dir/run.tsv: unfinished: process $$ still writes it"* ]]
  run --separate-stderr "$kymo" report "$dir/run.tsv"
  [[ "$output" == *"quality     warning: unfinished: process $$ still writes it"* ]]
  [[ "$output" != *"good"* ]]
  unfinished run 4194303
  run --separate-stderr "$kymo" report "$dir/run.tsv"
  [ -z "$stderr" ]  # otherwise it would say that it waits
  [[ "$output" == *"quality     warning: cut short: its recorder (process 4194303) stopped without finishing it"* ]]
}

@test "a range that ends before it begins" {
  refused 2 "ends before it begins" diff first.tsv second.tsv --from 5 --to 2
  refused 2 "ends before it begins" report first.tsv --from 5 --to 2 --html "$dir/x.html"
  refused 2 "with --html" report first.tsv --from 1
}

@test "no such recording" { refused 1 "none.tsv" diff first.tsv none.tsv; }
@test "no such recording in a set" { refused 1 "none.tsv" diff --base first.tsv --new none.tsv; }
@test "no such phase" { refused 1 'its marks are "request", "pre-dump"' diff first.tsv second.tsv --align nothing; }
@test "no such metric" { refused 1 "no recording has it" diff first.tsv second.tsv --metric nothing; }
@test "a range without rows" { refused 1 "no rows in the compared range" diff first.tsv second.tsv --from 99; }
@test "no such recording of a checkpoint" { refused 1 "recording thaw" diff first.tsv checkpoint --recording thaw; }
@test "only one argument" { refused 2 "give A and B" diff first.tsv; }
@test "a set without another" { refused 2 "give both --base and --new: --new is missing" diff --base first.tsv; }
@test "a share that is not a number" { refused 2 "is not a percentage" diff first.tsv second.tsv --fail-on-change ten; }
@test "two checkpoints are compared by their images and by their recordings" {
  for side in old new; do
    mkdir -p "$dir/$side/recordings"
    cp "$side-0.tsv" "$dir/$side/recordings/dump.tsv"
    cp "$side-0.meta.json" "$dir/$side/recordings/dump.meta.json"
    head -c 5000 /dev/zero >"$dir/$side/pages-1.img"
    echo rubbish >"$dir/$side/stats-dump"
  done
  printf more >>"$dir/new/pages-1.img"
  run --separate-stderr "$kymo" diff "$dir/old" "$dir/new"
  [ "$status" -eq 0 ]
  [[ "$output" =~ images\ +size\ +.*new/recordings/dump.tsv.*CHANGED\ BEYOND\ NOISE.*n_bytes ]]
  "$kymo" diff "$dir/old" "$dir/new" --json >"$dir/diff.json"
  /usr/bin/python3 - "$dir/diff.json" <<'END'
import json, sys
diff = json.load(open(sys.argv[1]))
assert diff["differences"][0]["name"] == "size", diff
assert diff["recordings"]["metrics"][0]["name"] == "n_bytes"
END
  # The images have changed. What has not changed are the recordings, and kymo must say so.
  cp "$dir/old/recordings/"* "$dir/new/recordings/"
  run --separate-stderr "$kymo" diff "$dir/old" "$dir/new"
  [ "$status" -eq 0 ]
  [[ "$output" =~ images\ +size\ +.*"in the columns of the recordings, nothing changed beyond noise" ]]
  # Without recordings, --align, --html and --fail-on-change cannot be used.
  rm -r "$dir/old/recordings"
  run --separate-stderr "$kymo" diff "$dir/old" "$dir/new"
  [ "$status" -eq 0 ]
  [[ "$output" != *"compared"* ]]
  refused 2 "no .tsv file there" diff "$dir/old" "$dir/new" --fail-on-change 10%
  # If the name of a recording is mistyped, kymo must report it, and not compare only the images.
  for end in tsv meta.json; do mkdir -p "$dir/old/recordings"; cp "old-0.$end" "$dir/old/recordings/dump.$end"; done
  refused 1 "no such recording, only dump" diff "$dir/old" "$dir/new" --recording dmp
}

@test "pipes and devices are refused, not waited for" {
  mkfifo "$dir/pipe"
  refused 1 "neither a folder nor a regular file" diff first.tsv "$dir/pipe"
  refused 1 "neither a folder nor a regular file" diff first.tsv /dev/zero
}

@test "a page has both recordings in it, and a page that cannot be written is an error" {
  "$kymo" diff first.tsv second.tsv --html "$dir/diff.html" >"$dir/out" 2>"$dir/talk"
  [ "$(cat "$dir/talk")" = "page written to $dir/diff.html" ]
  grep -q 'id="r0-samples1-0"' "$dir/diff.html"
  grep -q 'id="r1-samples1-0"' "$dir/diff.html"
  run --separate-stderr "$kymo" diff first.tsv second.tsv --html "$dir/none/diff.html"
  [ "$status" -eq 1 ]
  [[ "$stderr" == *"none/diff.html"* ]]
}

@test "a file that is no recording" {
  echo "a,b" >"$dir/c.tsv"
  refused 1 "not the header" diff first.tsv "$dir/c.tsv"
}

# stacks FILE KIND LINE...: writes a profile with these stacks (pprof_of.py).
stacks() {
  local file="$1" kind="$2"
  shift 2
  printf '%b\n' "$@" | /usr/bin/python3 "$BATS_TEST_DIRNAME/pprof_of.py" "$file" "$kind"
}

two_profiles() {
  stacks "$dir/a.pb.gz" cpu '500\tmain\thot' '400\tmain\tcold' '90\tmain\tgone' '10\tmain\tsame'
  stacks "$dir/b.pprof" cpu '620\tmain\thot' '300\tmain\tcold' '70\tmain\tfresh' '10\tmain\tsame'
}

@test "stack profiles: functions whose share changed beyond noise, those that changed most first" {
  two_profiles
  run --separate-stderr "$kymo" diff "$dir/a.pb.gz" "$dir/b.pprof"
  [ "$status" -eq 0 ]
  [ -z "$stderr" ]
  [[ "$output" == *"10 s of CPU time in 1,000 samples of 10 s"* ]]
  [[ "$output" == *"compared    6 functions"*"Fisher's"*"p corrected (Holm) for 10 shares"* ]]
  [[ "$output" =~ 50\.00\ %\ +62\.00\ %\ +\+12\.00\ .*grew\ +hot\ +app.*-10\.00\ .*shrank\ +cold.*-9\.00\ .*vanished\ +gone.*\+7\.00\ .*new\ +fresh ]]
  [[ "$output" != *" same "* ]]
  run --separate-stderr "$kymo" diff "$dir/a.pb.gz" "$dir/b.pprof" --rows 1
  [[ "$output" == *" hot "*"and 3 more (--rows)"* ]]
  [[ "$output" != *" cold "* ]]
}

@test "stack profiles: a function whose share shrank while its time grew" {
  stacks "$dir/a.pb.gz" cpu '200\tmain\tread' '100\tmain\twrite'
  stacks "$dir/b.pb.gz" cpu '600\tmain\tread' '1400\tmain\twrite'
  run --separate-stderr "$kymo" diff "$dir/a.pb.gz" "$dir/b.pb.gz"
  [[ "$output" =~ 66\.67\ %\ +30\.00\ %\ +-36\.67\ +2\ s\ +6\ s\ .*\ share\ shrank\ +read ]]
  [[ "$output" == *"CHANGE is of the share of all, which may shrink while the function's own value grows"* ]]
}

# dump FILE LINE...: writes the profile of a dump, with these stacks in the phase "memory", and 1000 samples in "freeze".
dump() {
  local file="$1"
  shift
  printf '%b\n' "$@" | /usr/bin/python3 "$BATS_TEST_DIRNAME/pprof_of.py" "$dir/memory.pb.gz" cpu 10000000 memory
  printf '1000\tmain\n' | /usr/bin/python3 "$BATS_TEST_DIRNAME/pprof_of.py" "$dir/freeze.pb.gz" cpu 10000000 freeze
  "$kymo" profile --from "$dir/memory.pb.gz" --from "$dir/freeze.pb.gz" -o "$file" -q
}

@test "stack profiles: one phase of two dumps" {
  dump "$dir/a.pb.gz" '50\tmain\thot' '50\tmain\tcold'
  dump "$dir/b.pb.gz" '90\tmain\thot' '10\tmain\tcold'
  run --separate-stderr "$kymo" diff "$dir/a.pb.gz" "$dir/b.pb.gz" --phase memory
  [ "$status" -eq 0 ]
  [[ "$output" == *"a.pb.gz: 1 s of CPU time in 100 samples"* ]]
  [[ "$output" =~ 50\.00\ %\ +90\.00\ %\ +\+40\.00\ .*grew\ +hot ]]
  refused 1 "a.pb.gz: --phase thaw: it has no samples; these phases have: " diff "$dir/a.pb.gz" "$dir/b.pb.gz" --phase thaw
  refused 2 "--phase is for stack profiles" diff first.tsv second.tsv --phase memory
}

@test "stack profiles: the JSON has shares, and p as counted with whole numbers" {
  two_profiles
  "$kymo" diff "$dir/a.pb.gz" "$dir/b.pprof" --json --fail-on-change 50% >"$dir/diff.json"
  /usr/bin/python3 - "$dir/diff.json" <<'END'
import json, sys
from fractions import Fraction
from math import comb, isclose
diff = json.load(open(sys.argv[1]))
assert (diff["test"], diff["correction"], diff["shares_of"], diff["tested"]) == ("Fisher", "Holm", "samples", 10), diff
found = {one["function"]: one for one in diff["functions"]}
def p(before, after, all=1000):
    both = before + after
    ways = [comb(all, k) * comb(all, both - k) for k in range(both + 1)]
    tails = sum(ways[:before + 1]), sum(ways[before:])
    return float(min(Fraction(1), Fraction(2 * min(tails), sum(ways))))
expected = {"hot": (500, 620, "share grew"), "cold": (400, 300, "share shrank"), "gone": (90, 0, "vanished"), "fresh": (0, 70, "new"),
            "same": (10, 10, "within noise")}
values = {name: p(before, after) for name, (before, after, _) in expected.items()}
# Holm's correction: each function is tested twice, for its own share and its total share. So the factor of the first rank is
# the number of all tests.
adjusted, least = {}, 0
for rank, name in enumerate(sorted(values, key=values.get)):
    least = adjusted[name] = max(least, min(1, (10 - 2 * rank) * values[name]))
for name, (before, after, verdict) in expected.items():
    for share in ("self", "total"):
        one = found[name][share]
        assert (one["a"], one["b"], one["verdict"]) == (before / 1000, after / 1000, verdict), one
        assert isclose(one["p"], values[name], rel_tol=1e-6), (one, values[name])
        assert isclose(one["adjusted_p"], adjusted[name], rel_tol=1e-6), (one, adjusted[name])
assert "p" not in found["main"]["total"] and found["main"]["total"]["verdict"] == "within noise"
assert diff["fail_on_change"]["outcome"] == "no change", diff["fail_on_change"]
END
}

@test "stack profiles: --fail-on-change is about points of the share, with the exit codes of recordings" {
  two_profiles
  run --separate-stderr -1 "$kymo" diff "$dir/a.pb.gz" "$dir/b.pprof" --fail-on-change 11%
  [[ "$output" == *"CHANGE: a function beyond noise and beyond 11 points: hot"* ]]
  run --separate-stderr -0 "$kymo" diff "$dir/a.pb.gz" "$dir/b.pprof" --fail-on-change 13%
  [[ "$output" == *"no change beyond noise and beyond 13 points"* ]]
  # With three samples on each side, no difference can have a p below 0.05.
  stacks "$dir/few.pb.gz" cpu '2\tmain\thot' '1\tmain\tcold'
  stacks "$dir/other.pb.gz" cpu '1\tmain\thot' '2\tmain\tcold'
  run --separate-stderr -3 "$kymo" diff "$dir/few.pb.gz" "$dir/other.pb.gz" --fail-on-change 10%
  [[ "$output" == *"CANNOT TELL"*"profile for longer"* ]]
}

@test "stack profiles of waits: shares of the time, and no test" {
  stacks "$dir/a.pb.gz" wait '300\tmain\tread' '100\tmain\tlock'
  stacks "$dir/b.pb.gz" wait '100\tmain\tread' '300\tmain\tlock'
  run --separate-stderr -3 "$kymo" diff "$dir/a.pb.gz" "$dir/b.pb.gz" --fail-on-change 10%
  [[ "$output" == *"test        none: of waits only the sum is known"* ]]
  [[ "$output" == *"+50.00"*"lock"* ]]
  stacks "$dir/cpu.pb.gz" cpu '1\tmain'
  refused 1 "A is a profile of waiting and B one of CPU time" diff "$dir/a.pb.gz" "$dir/cpu.pb.gz"
}

@test "stack profiles: what cannot be compared is refused in one line" {
  two_profiles
  refused 1 "is a stack profile and" diff "$dir/a.pb.gz" first.tsv
  refused 1 "is a stack profile and" diff first.tsv "$dir/a.pb.gz"
  refused 2 "give two of them as A and B" diff --base "$dir/a.pb.gz" --new "$dir/b.pprof"
  for option in "--align dump" "--from 1" "--to 1" "--metric x" "--margin 5%" "--recording dump" "--most-values 5"; do
    refused 2 "${option%% *} is for recordings" diff "$dir/a.pb.gz" "$dir/b.pprof" $option
  done
}

@test "stack profiles: a page has the stacks of both and their verdicts" {
  two_profiles
  run --separate-stderr "$kymo" diff "$dir/a.pb.gz" "$dir/b.pprof" --html "$dir/x.html"
  if [[ "$stderr" == *"built without its pages"* ]]; then skip "there is no npm"; fi
  [ "$status" -eq 0 ]
  [ "$stderr" = "page written to $dir/x.html" ]
  [[ "$output" == *"OWN SHARE CHANGED BEYOND NOISE"* ]]
  /usr/bin/python3 - "$dir/x.html" <<'END'
import json, re, sys
page = open(sys.argv[1], encoding="utf-8").read()
profile = json.loads(re.search(r'id="profile">(.*?)</script>', page, re.S).group(1))
tree = profile["tree"]
names = [profile["functions"][function][0] for function in tree["functions"]]
found = {name: at for name, *at in zip(names, tree["before"], tree["self"], tree["verdicts"])}
# Verdicts: 0 within noise, 1 grew, 2 shrank, 3 new, 4 vanished.
assert found == {"main": [0, 0, 0], "hot": [500, 620, 1], "cold": [400, 300, 2], "fresh": [0, 70, 3], "gone": [90, 0, 4],
                 "same": [10, 10, 0]}, found
END
  run --separate-stderr "$kymo" diff "$dir/a.pb.gz" "$dir/b.pprof" --html "$dir/none/x.html"
  [ "$status" -eq 1 ]
  [[ "$stderr" == *"none/x.html"* ]]
}

@test "stack profiles of a real program that does something else" {
  for mode in three work; do
    run "$kymo" profile -q -r 999 -o "$dir/$mode.pb.gz" -- "$build/tests/profiler/stacks/programs/functions" $mode /dev/null 300
    if [[ "$output" == *"cannot take stacks"* ]]; then skip "cannot take stacks here"; fi
    gzip -dc "$dir/$mode.pb.gz" >"$dir/$mode.pprof"
  done
  cp "$dir/work.pb.gz" "$dir/by-its-content"
  run --separate-stderr "$kymo" diff "$dir/three.pprof" "$dir/by-its-content" --fail-on-change 10%
  echo "$output $stderr"
  [ "$status" -eq 1 ]
  [[ "$output" =~ -[0-9.]+\ +[0-9.]+\ ms\ +0\ ns\ +\<\ 0\.0001\ +vanished\ +[^$'\n']*half\(\)\ +functions ]]
  run --separate-stderr "$kymo" diff "$dir/three.pprof" "$dir/three.pb.gz" --fail-on-change 0%
  [ "$status" -eq 0 ]
  [[ "$output" == *"nothing changed beyond noise"* ]]
}

@test "stack profiles of unknown origin: damaged, too large, no regular files, names with control codes" {
  two_profiles
  echo hello >"$dir/text.pb.gz"
  refused 1 "text.pb.gz is no profile of pprof, or is damaged" diff "$dir/a.pb.gz" "$dir/text.pb.gz"
  head -c 100 "$dir/a.pb.gz" >"$dir/cut.pb.gz"
  refused 1 "cut.pb.gz" diff "$dir/cut.pb.gz" "$dir/a.pb.gz"
  head -c 600M /dev/zero | gzip -1 >"$dir/bomb.pb.gz"
  refused 1 "bomb.pb.gz is too large" diff "$dir/a.pb.gz" "$dir/bomb.pb.gz"
  mkfifo "$dir/pipe.pb.gz"
  refused 1 "pipe.pb.gz" diff "$dir/a.pb.gz" "$dir/pipe.pb.gz"
  refused 1 "No such file" diff "$dir/a.pb.gz" "$dir/none.pb.gz"
  stacks "$dir/steer.pb.gz" cpu '1000\tmain\t\\033[2Jred'
  run --separate-stderr -0 "$kymo" diff "$dir/a.pb.gz" "$dir/steer.pb.gz"
  [[ "$output" == *"[2Jred"* ]]
  [[ "$output" != *$'\033'* ]]
}
