#!/usr/bin/env bash
# Code that would record wrong values without an error must not compile, and the compiler must say what to
# write instead.
#   refused_programs_test.sh CXX FLAG...
set -euo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
compiler=("$@")
first=14  # the line of the first statement

compile() {  # STATEMENT...: puts each on a line of its own; the compiler's messages are in $scratch/said
  cat >"$scratch/program.cc" <<PROGRAM
#include <kymo/gauge.h>
#include <kymo/profiling_only.h>
#include <kymo/registry.h>
#include <kymo/scope.h>
#include <atomic>
#include <string>
using U64 = std::uint64_t;
[[maybe_unused]] static std::atomic<U64> g_queued{0};
KYMO_PROFILING_COUNTER(steps);
void use(kymo::Registry& registry, const kymo::Counter& counter, const kymo::Histogram& histogram, kymo::Scope& scope);
void use(kymo::Registry& registry, const kymo::Counter& counter, const kymo::Histogram& histogram, kymo::Scope& scope) {
  const kymo::Metric gauge{"queued", "", kymo::Kind::gauge, kymo::Unit::count, {}};
  static_cast<void>(registry), static_cast<void>(counter), static_cast<void>(histogram), static_cast<void>(scope);
$(printf '  static_cast<void>(%s);\n' "$@")
}
PROGRAM
  "${compiler[@]}" -std=c++20 -fsyntax-only "$scratch/program.cc" 2>"$scratch/said"
}
fail() { cat "$scratch/said" >&2; echo "$1" >&2; exit 1; }
refuses() {  # TEXT STATEMENT...: the compiler must refuse each statement with TEXT
  local text=$1 line=$first statement
  shift
  compile "$@" && fail "accepted: $*"
  for statement; do
    grep -q "program.cc:$line:" "$scratch/said" || fail "accepted: $statement"
    line=$((line + 1))
  done
  [ "$(grep -cF "error: static assertion failed" "$scratch/said")" = $# ] ||
    [ "$(grep -cE "error: static_assert failed" "$scratch/said")" = $# ] || fail "not each of them is refused by its message"
  grep -qF "$text" "$scratch/said" || fail "the message lacks: $text"
}
callbacks() { printf 'registry.callback(gauge, %s)\n' "$@"; }

mapfile -t bad < <(callbacks '[] { return -5; }' '[] { return 0.75; }' '[] { return 5L; }' '[] { return 1.0F; }' \
  '[] { return std::string("5"); }' '[] {}' '[](int) { return U64{1}; }' '[]() -> std::atomic<U64>& { return g_queued; }' \
  'std::function<int()>()' 'nullptr')
mapfile -t good < <(callbacks '[] { return U64{5}; }' '[] { return 5U; }' '[] { return sizeof(int); }' '[] { return true; }' \
  '[] { return g_queued.load(); }' 'std::function<U64()>()' '[n = U64{0}]() mutable { return ++n; }')

refuses 'the function must return an unsigned integer, because a column has no sign and no fraction. For a fraction, return thousandths' "${bad[@]}"
[ "$(grep -c 'Write, for example' "$scratch/said")" = 0 ] || fail "the message advises a conversion that docs/library.md forbids"
compile 'kymo::Registry::Callback([] { return 0.75; })' && fail "accepted: a public std::function that converts silently"
refuses 'kymo::Counter::add: a counter counts whole numbers.' 'counter.add(0.75)'
refuses 'kymo::ProfilingCounter::add: a counter counts whole numbers.' 'steps.add(0.75)'
refuses 'kymo::Scope::add_bytes: bytes are whole numbers.' 'scope.add_bytes(0.75)'
refuses 'kymo::Gauge::set: a gauge holds whole numbers.' 'kymo::make_gauge(registry, gauge, 0)->set(0.75)'
refuses 'kymo::Histogram::record: a histogram counts whole numbers.' 'histogram.record(1.5F)'
for negative in 'kymo::make_gauge(registry, gauge, 0)->set(-1)' 'counter.add(-1)' 'histogram.record(-7)' 'steps.add(-1)'; do
  compile "$negative" && fail "accepted: $negative"
  grep -q a_number_below_zero_is_refused "$scratch/said" || fail "not refused for its sign: $negative"
done
compile "${good[@]}" 'steps.add()' 'steps.add(5)' 'counter.add()' 'counter.add(5)' 'counter.add(sizeof(int))' 'histogram.record(7)' 'scope.add_bytes(7)' || fail "refused: what is right"
compiler+=(-DKYMO_PROFILING=1)
refuses 'kymo::Counter::add: a counter counts whole numbers.' 'steps.add(0.75)'
compile 'steps.add()' 'steps.add(5)' || fail "refused: what is right in a build for profiling"
echo "what would be wrong is refused, and the message says what to write"
