#pragma once

#include <memory>
#include <string>
#include <vector>

#include "counting.h"
#include "programs.h"
#include "support/breakable_criu.h"

namespace kymo::test {

// kymod with a job of this kind, which it has started. The test fails if the job does not count.
struct CountedJob {
  // `options` are the first words of a container's own command.
  explicit CountedJob(Kind kind, const std::vector<std::string>& options = {});

  // Dumps the job to dir(), and waits for the end of its processes. Fails the test if that does not work.
  void dump();
  [[nodiscard]] std::string dir() const { return kymod->path("c"); }

  BreakableCriu criu;
  std::unique_ptr<Counting> counting;
  std::unique_ptr<Kymod> kymod;
};

}  // namespace kymo::test

// The first line of a test that makes and dumps a job of this kind.
#define KYMO_NEEDS(kind)                           \
  do {                                             \
    if (!::kymo::test::why_not(kind).empty()) {    \
      GTEST_SKIP() << ::kymo::test::why_not(kind); \
    }                                              \
  } while (false)
