#include "support/slow_mount.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <chrono>
#include <cstdlib>
#include <thread>
#include <utility>

namespace kymo::test {
namespace {

bool succeeds(const std::string& command) {
  const int status = std::system(command.c_str());  // NOLINT(cert-env33-c): a test's own command
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

SlowMount::SlowMount(const std::string& source, std::string target, const std::string& rate,
                     Slow slow)
    : target_(std::move(target)),
      mounted_(succeeds((slow == Slow::writing ? "bindfs --write-rate=" : "bindfs --read-rate=") +
                        rate + (slow == Slow::reading_by_root_alone ? " --no-allow-other" : "") +
                        " '" + source + "' '" + target_ + "'")) {}

// A process that has just been killed may still have a file open, so unmounting may fail at first.
SlowMount::~SlowMount() {
  if (!mounted_) return;
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  bool unmounted = false;
  while (!(unmounted = succeeds("umount '" + target_ + "'")) &&
         std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_TRUE(unmounted) << target_;
}

}  // namespace kymo::test
