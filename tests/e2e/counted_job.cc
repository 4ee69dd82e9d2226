#include "counted_job.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace kymo::test {

CountedJob::CountedJob(Kind kind, const std::vector<std::string>& options)
    : counting(Counting::make(kind, criu)) {
  std::vector<std::string> flags = counting->flags();
  flags.insert(flags.end(), {"--criu", criu.path()});
  kymod = std::make_unique<Kymod>(flags);
  kymod->start();
  std::vector<std::string> run = counting->run();
  const auto command = std::find(run.begin(), run.end(), "--");
  if (!options.empty() && command != run.end()) {
    run.insert(command + 1, options.begin(), options.end());
  }
  static_cast<void>(kymod->kymo_json(run));
  EXPECT_TRUE(eventually([&] { return counting->counts(); })) << kymod->log();
}

void CountedJob::dump() {
  const Outcome dumped = kymod->kymo({"dump", "process", counting->name(), "--dir", dir()});
  ASSERT_EQ(dumped.exit_code, 0) << dumped.err;
  counting->forget();
  EXPECT_TRUE(eventually([&] { return counting->copies().empty(); })) << kymod->log();
}

}  // namespace kymo::test
