#pragma once

#include <sys/types.h>

#include <string>

namespace kymo::test {

// The criu that tests use: KYMO_TEST_CRIU, else what scripts/setup has put into .deps, else `criu`
// on PATH.
std::string criu_path();

// The older criu, CRIU 4.1: KYMO_TEST_CRIU_FALLBACK, else what scripts/setup has put into .deps.
std::string criu_fallback_path();
// Why it does not work here; empty: it does, and it is older than CRIU 4.2.
const std::string& why_no_fallback();

// Why real checkpoints cannot be made here, for GTEST_SKIP; empty where they can: this is root and
// criu passes its own check (run once).
const std::string& why_no_criu();

// Whether CRIU's code is mapped in a process, as one that was killed leaves it.
bool has_criu_code(pid_t pid);

}  // namespace kymo::test

// First line of a test of what is chosen of two CRIUs.
#define KYMO_NEEDS_BOTH_CRIUS()                        \
  do {                                                 \
    KYMO_NEEDS_CRIU();                                 \
    if (!::kymo::test::why_no_fallback().empty()) {    \
      GTEST_SKIP() << ::kymo::test::why_no_fallback(); \
    }                                                  \
  } while (false)
// First line of a test that makes real checkpoints.
#define KYMO_NEEDS_CRIU()                          \
  do {                                             \
    if (!::kymo::test::why_no_criu().empty()) {    \
      GTEST_SKIP() << ::kymo::test::why_no_criu(); \
    }                                              \
  } while (false)
