#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/runtime.h"
#include "support/containers.h"
#include "support/real_criu.h"
#include "support/stop_points.h"
#include "support/temporary_directory.h"

namespace kymo::runtime {

// What the tests of containerd and Docker share: a server for the test, and kymod's runtime that uses it.
template <class Server>
class ServerRuntimeTest : public testing::Test {
 protected:
  static bool counts_on(const ProcessId& process) {
    return test::counts_on("/proc/" + std::to_string(process.pid) + "/root");
  }
  // Runs a container. `words` come behind the command of `spec`.
  ProcessId run(RunSpec spec, const std::vector<std::string>& words) {
    spec.command.insert(spec.command.end(), words.begin(), words.end());
    const Result<ProcessId> process = runtime_->run(spec);
    EXPECT_TRUE(process.ok()) << (process ? "" : process.error().message);
    return process ? *process : ProcessId{};
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
  // kymod asks the server every second, and `kymo ps` waits for this. If each of these calls waited for the server's
  // answer, they would take longer than the limit of a test.
  void expect_a_hanging_server_holds_nobody_up(const std::string& id) {
    server_->stop_answering();
    for (int i = 0; i < 1000; ++i) EXPECT_FALSE(runtime_->process_of(id).has_value());
    server_->answer_again();
  }
  // The dump of the container "web" is cancelled at each step, and ended by a deadline. Each time, the container must
  // have this status afterwards.
  void expect_it_runs_on_at_whatever_step(const ProcessId& process, const std::string& status) {
    const auto expect_it_runs_on = [&](const Result<DumpOutcome>& dumped, Code code) {
      ASSERT_FALSE(dumped.ok());
      EXPECT_EQ(dumped.error().code, code) << dumped.error().message;
      EXPECT_EQ(server_->status("web"), status) << server_->log();
      ASSERT_TRUE(counts_on(process)) << dumped.error().message;
      EXPECT_FALSE(test::has_criu_code(process.pid));
    };
    for (const char* const step : test::kLoggedDumpSteps) {
      SCOPED_TRACE(test::name_of_step(step));
      DumpSpec dump = spec("web", true);
      const auto dumped = test::cancelled_at(criu_, step, [&](const Cancellation* cancel) {
        dump.cancel = cancel;
        return runtime_->dump(dump, {});
      });
      expect_it_runs_on(dumped, Code::cancelled);
      if (HasFatalFailure()) return;
    }
    const auto dump_until = [&](std::uint64_t deadline_ns) {
      DumpSpec dump = spec("web", true);
      dump.deadline_ns = deadline_ns;
      return runtime_->dump(dump, {});
    };
    test::late_at(criu_, "Dumping pages (type", dump_until,
                  [&](const auto& dumped) { expect_it_runs_on(dumped, Code::deadline_exceeded); });
  }

  // The criu that the server uses.
  const test::BreakableCriu criu_;
  test::TemporaryDirectory folder_;
  std::optional<Server> server_;
  std::unique_ptr<Runtime> runtime_;
  int dumps_ = 0;
};

}  // namespace kymo::runtime
