#include "daemon/jobs.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>

#include "probe/process.h"
#include "runtime/process_runtime.h"
#include "support/temporary_directory.h"

namespace kymo::daemon {
namespace {

TEST(JobsTest, HowAJobEndedIsKnownAsSoonAsItCountsAsEnded) {
  const test::TemporaryDirectory folder;
  auto store = store::Store::open(folder.path() + "/kymo.db");
  ASSERT_TRUE(store.ok());
  auto metrics = Metrics::make();
  ASSERT_TRUE(metrics.ok());
  Jobs jobs(**store, **metrics, folder.path());
  // The reaper has seen the end, and comes to tell of it.
  std::promise<void> seen;
  std::promise<void> tell;
  runtime::ProcessRuntimeOptions options;
  options.exited = [&](const runtime::ProcessId& process, int wait_status) {
    seen.set_value();
    tell.get_future().wait();
    jobs.exited(process, wait_status);
  };
  std::unique_ptr<runtime::Runtime> runtime = runtime::make_process_runtime(std::move(options));

  v1::RunRequest request;
  request.set_name("work");
  for (const char* word : {"/bin/sh", "-c", "exit 3"}) request.add_command(word);
  const Result<store::Job> job = jobs.run(*runtime, request);
  ASSERT_TRUE(job.ok()) << job.error().message;
  seen.get_future().wait();
  EXPECT_FALSE(probe::process_lives(job->pid, job->start_ticks));
  EXPECT_EQ(jobs.list()->front().state(), v1::Job::RUNNING);
  tell.set_value();
  EXPECT_TRUE(test::eventually([&] { return jobs.list()->front().state() == v1::Job::EXITED; }));
  EXPECT_EQ(jobs.list()->front().exit_code(), 3);
}

}  // namespace
}  // namespace kymo::daemon
