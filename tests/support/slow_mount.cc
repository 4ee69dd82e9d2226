#include "support/slow_mount.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
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
                        rate + " '" + source + "' '" + target_ + "'")) {}

SlowMount::~SlowMount() {
  if (mounted_) {
    EXPECT_TRUE(succeeds("umount '" + target_ + "'")) << target_;
  }
}

}  // namespace kymo::test
