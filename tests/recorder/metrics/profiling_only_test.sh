#!/usr/bin/env bash
# With KYMO_PROFILING=0 a program must have no instruction and no name of its profiling metrics. With 1 it must
# have them.
#   profiling_only_test.sh SOURCE_DIR LEVELS CXX FLAG...     (LEVELS: optimisation levels, such as "-O1 -O2")
set -euo pipefail
source=$1 levels=$2 cxx=$3
shift 3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
steps="$source/tests/recorder/metrics/profiling_only/steps.cc"

compile() { "$cxx" -std=c++20 -fPIC "${@:2}" "$flags" -Wno-address -Wno-nonnull-compare -c "$steps" -o "$scratch/$1.o"; }
code() { objdump -d --no-show-raw-insn "$scratch/$1.o" | tail -n +4; }
fail() { echo "$1" >&2; exit 1; }

for flags in $levels; do
  compile off -DKYMO_PROFILING=0 "$@"
  compile without -DWITHOUT "$@"
  compile on -DKYMO_PROFILING=1 "$@"
  [ "$(code off)" = "$(code without)" ] || fail "$flags: switched off, it still costs instructions"
  strings "$scratch/off.o" | grep -q "inner_steps\|Steps of the inner" && fail "$flags: switched off, its name remains"
  nm -C "$scratch/off.o" | grep -q "add_without_cells\|Registry::counter" && fail "$flags: switched off, it still calls"
  nm -C "$scratch/on.o" | grep -q "Registry::counter" || fail "$flags: switched on, nothing is registered"
  nm "$scratch/off.o" | grep -q profiling_steps && fail "$flags: switched off, it takes a byte"
  nm "$scratch/on.o" | grep -q profiling_steps || fail "$flags: switched on, it is not there"
done
echo "no instruction, no byte, no name"
