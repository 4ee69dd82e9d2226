#pragma once

#include <sys/types.h>

#include <string>

namespace kymo::test {

// The criu of the tests: KYMO_TEST_CRIU, or else the one that scripts/setup has put into .deps, or
// else `criu` on PATH.
std::string criu_path();

// The older criu, CRIU 4.1: KYMO_TEST_CRIU_FALLBACK, or else the one that scripts/setup has put
// into .deps.
std::string criu_fallback_path();
// The reason why it cannot be used here. Empty if it works and is older than CRIU 4.2.
const std::string& why_no_fallback();

// The reason why real checkpoints cannot be made here, for GTEST_SKIP. Empty if this is root and
// criu passes its own check (which is run only once).
const std::string& why_no_criu();

// Whether a process has CRIU's code mapped, as a killed CRIU leaves it.
bool has_criu_code(pid_t pid);

}  // namespace kymo::test

// The first line of a test about the choice between two CRIUs.
#define KYMO_NEEDS_BOTH_CRIUS()                        \
  do {                                                 \
    KYMO_NEEDS_CRIU();                                 \
    if (!::kymo::test::why_no_fallback().empty()) {    \
      GTEST_SKIP() << ::kymo::test::why_no_fallback(); \
    }                                                  \
  } while (false)
// The first line of a test that makes real checkpoints.
#define KYMO_NEEDS_CRIU()                          \
  do {                                             \
    if (!::kymo::test::why_no_criu().empty()) {    \
      GTEST_SKIP() << ::kymo::test::why_no_criu(); \
    }                                              \
  } while (false)
