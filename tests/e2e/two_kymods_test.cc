// Two kymods on one machine, and one process that both know.

#include <gtest/gtest.h>
#include <signal.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "counting.h"
#include "programs.h"
#include "support/breakable_criu.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

// Before the fix, the second kymod took the work of the first one's CRIU for leftovers of a killed CRIU. It ended the
// repair mode of the connection, and the first dump failed. `--force` is needed because the check before a dump would
// refuse a traced process.
TEST(TwoKymodsTest, TheSecondOneChangesNothingInAProcessThatTheFirstOneDumps) {
  KYMO_NEEDS_CRIU();
  const BreakableCriu criu;
  const std::unique_ptr<Counting> counting = Counting::make(Kind::connected, criu);
  Kymod first({"--criu", criu.path()});
  Kymod second;
  first.start();
  second.start();
  static_cast<void>(first.kymo_json(counting->run()));
  ASSERT_TRUE(eventually([&] { return counting->counts(); }));
  const std::string pid = first.job(counting->name())["pid"].dump();
  criu.break_at("Dumping pages (type", SIGSTOP);
  Outcome dumped;
  std::thread client([&] {
    dumped = first.kymo({"dump", "process", pid, "--tcp-established", "--dir", first.path("c")});
  });
  const pid_t stopped = criu.stopped();
  EXPECT_NE(stopped, 0) << first.log();
  criu.mend();
  const Outcome refused = second.kymo({"dump", "process", pid, "--tcp-established", "--force"});
  EXPECT_EQ(refused.exit_code, 1) << refused.out;
  EXPECT_NE(refused.err.find("it is being dumped by another kymod"), std::string::npos)
      << refused.err;
  EXPECT_TRUE(second.kymo_json({"checkpoints"}).empty());
  if (stopped != 0) kill(stopped, SIGCONT);
  client.join();
  ASSERT_EQ(dumped.exit_code, 0) << dumped.err;
  const Outcome restored = first.kymo({"restore", first.path("c")});
  ASSERT_EQ(restored.exit_code, 0) << restored.err;
  EXPECT_TRUE(counting->counts());
  EXPECT_EQ(counting->connections(), 1);
}

}  // namespace
}  // namespace kymo::test
