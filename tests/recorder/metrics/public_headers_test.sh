#!/usr/bin/env bash
# Who compiles with many warnings gets none from the public headers, with either compiler.
#   public_headers_test.sh INCLUDE_FOLDER FLAG...
set -euo pipefail
include=$1
shift
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
warnings=(-Werror -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wold-style-cast -Wcast-qual
  -Wdouble-promotion -Wnon-virtual-dtor -Woverloaded-virtual)

check() {  # COMPILER WARNING...
  printf '#include "%s"\n' "$include"/kymo/*.h "$scratch/uses.h" >"$scratch/program.cc"
  "$@" "${warnings[@]}" "${flags[@]}" -I"$include" -std=c++20 -fsyntax-only "$scratch/program.cc"
}

# Templates warn only where they are used.
cat >"$scratch/uses.h" <<'HEADER'
#include "kymo/histogram.h"
#include "kymo/profiling_only.h"
#include "kymo/registry.h"
#include "kymo/timed_scope.h"
inline void use(kymo::Registry& registry, const kymo::Counter& counter, const kymo::Histogram& histogram) {
  counter.add(1U);
  histogram.record(std::uint64_t{7});
  static_assert(kymo::buckets_in_us().first > 0);
  static_cast<void>(registry.callback({"queued", "", kymo::Kind::gauge, kymo::Unit::count, {}}, [] { return 5U; }));
}
HEADER

flags=("$@")
[ "$(find "$include/kymo" -name '*.h' | wc -l)" -gt 10 ] || { echo "no headers in $include/kymo" >&2; exit 1; }
check g++ -Wuseless-cast -Wduplicated-cond -Wlogical-op
check clang++
echo 'int narrow(long wide) { return wide; }' >"$scratch/uses.h"
if check g++ 2>/dev/null; then echo "a warning is not found" >&2; exit 1; fi
