#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "runtime/runtime.h"
#include "support/containers.h"
#include "support/instants.h"
#include "support/real_criu.h"
#include "support/temporary_directory.h"

namespace kymo::runtime {

// What the tests of containerd and of Docker share: a server of the test's own, and kymod's runtime
// for it.
template <class Server>
class ServerRuntimeTest : public testing::Test {
 protected:
  static bool counts_on(const ProcessId& process) {
    return test::counts_on("/proc/" + std::to_string(process.pid) + "/root");
  }
  DumpSpec spec(const std::string& name, bool leave_running = false) {
    const Result<Container> found = runtime_->find(name);
    EXPECT_TRUE(found.ok()) << (found ? "" : found.error().message);
    const std::string number = std::to_string(++dumps_);
    DumpSpec spec{found->process, folder_.folder(number + "-images"),
                  folder_.folder(number + "-work"), leave_running, found->id};
    spec.frozen = found->frozen;
    return spec;
  }
  // kymod asks every second, and holds up `kymo ps` meanwhile. If each of these calls waited for
  // the answer, they would together take longer than a test may.
  void expect_a_hanging_server_holds_nobody_up(const std::string& id) {
    server_->stop_answering();
    for (int i = 0; i < 1000; ++i) EXPECT_FALSE(runtime_->process_of(id).has_value());
    server_->answer_again();
  }
  // Ends dumps of the container "web" by a deadline, at one instant after the other. The container must have this status
  // after each.
  void expect_it_runs_on_at_whatever_instant(const ProcessId& process, const std::string& status) {
    bool done = false;
    for (int ms = 1; !done && ms < test::kLastInstantMs && !HasFailure();
         ms = test::next_instant(ms, 60)) {
      SCOPED_TRACE(std::to_string(ms) + " ms");
      DumpSpec cut = spec("web", true);
      cut.deadline_ns = monotonic_ns() + static_cast<std::uint64_t>(ms) * 1'000'000;
      const Result<DumpOutcome> dumped = runtime_->dump(cut, {});
      done = dumped.ok();
      SCOPED_TRACE(done ? std::string("done") : dumped.error().message);
      EXPECT_EQ(server_->status("web"), status) << server_->log();
      EXPECT_TRUE(counts_on(process));
      EXPECT_FALSE(test::has_criu_code(process.pid));
    }
    EXPECT_TRUE(done);
  }

  test::TemporaryDirectory folder_;
  std::optional<Server> server_;
  std::unique_ptr<Runtime> runtime_;
  int dumps_ = 0;
};

}  // namespace kymo::runtime
