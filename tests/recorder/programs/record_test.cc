#include "recorder/programs/record.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "lens/analysis/tsv_reader.h"
#include "support/temporary_directory.h"

namespace kymo::record {
namespace {

using Columns = std::map<std::string, std::vector<std::uint64_t>>;

Columns columns_of(const std::string& path) {
  Columns columns;
  auto reader = analysis::TsvReader::open(path);
  EXPECT_TRUE(reader);
  if (!reader) {
    return columns;
  }
  analysis::RowBlock block = reader->make_block();
  for (Result<bool> more = reader->next(block); more && *more; more = reader->next(block)) {
    for (std::size_t i = 0; i < reader->columns().size(); ++i) {
      std::vector<std::uint64_t>& values = columns[reader->columns()[i]];
      for (const std::uint64_t value : block.column(i + 1)) {
        values.push_back(value);
      }
    }
  }
  return columns;
}

class RecordTest : public ::testing::Test {
 protected:
  Result<Outcome> record(const std::string& script, bool realtime = true) {
    Options options;
    ++runs_;  // another name each time, because a recording is never overwritten
    options.output = output();
    options.realtime = realtime;
    return record_command({"/bin/sh", "-c", script}, options);
  }
  [[nodiscard]] std::string output() const {
    return folder_.path() + "/run" + std::to_string(runs_) + ".tsv";
  }

 private:
  test::TemporaryDirectory folder_;
  int runs_ = 0;
};

// Another thread than the sampling one reads the process tree. The last row gets a reading of its
// own.
TEST_F(RecordTest, TheLastRowHasAllThatTheCommandDidAndEachRowTheAgeOfItsFigures) {
  const Result<Outcome> outcome = record("sleep 0.2; head -c 3000000 /dev/zero >/dev/null; exit 3");
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(outcome->exit_code, 3);
  const Columns columns = columns_of(output());
  ASSERT_FALSE(columns.empty());
  const std::vector<std::uint64_t>& written = columns.at("tree_written_bytes");
  EXPECT_TRUE(std::is_sorted(written.begin(), written.end()));
  EXPECT_GE(written.back(), 3'000'000U);
  EXPECT_GE(written.size(), 2U);
  const std::vector<std::uint64_t>& ages = columns.at("profiler_tree_age_ns");
  EXPECT_GT(*std::max_element(ages.begin(), ages.end()), 0U);
  EXPECT_GE(columns.at("tree_processes").front(), 1U);
}

TEST_F(RecordTest, TheCommandInheritsNoPriority) {
  for (const bool realtime : {true, false}) {
    // Fields 19 and 41 of the shell's own stat file are the nice value and the policy (proc(5)).
    const Result<Outcome> outcome =
        record("read -r line </proc/$$/stat; set -- ${line##*) }; test ${17} -eq " +
                   std::to_string(::getpriority(PRIO_PROCESS, 0)) + " && test ${39} -eq 0",
               realtime);
    ASSERT_TRUE(outcome) << outcome.error().message;
    EXPECT_EQ(outcome->exit_code, 0);
  }
}

TEST_F(RecordTest, ARunningProcessIsRecordedWhileItIsStopped) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::raise(SIGSTOP);
    ::_exit(0);
  }
  ::waitpid(child, nullptr, WUNTRACED);
  ProcessOptions options;
  options.recording.output = output();
  options.pid = child;
  options.duration = std::chrono::milliseconds(100);
  const Result<Outcome> outcome = record_process(options);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ASSERT_TRUE(outcome) << outcome.error().message;
  const Columns columns = columns_of(output());
  EXPECT_EQ(columns.at("tree_stopped").back(), 1U);
}

}  // namespace
}  // namespace kymo::record
