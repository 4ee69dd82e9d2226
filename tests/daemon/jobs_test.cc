#include "daemon/jobs.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <future>
#include <memory>
#include <optional>

#include "daemon/target.h"
#include "probe/process.h"
#include "runtime/process_runtime.h"
#include "support/no_descriptors.h"
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

// Whoever held enough connections made every job "exited" for good.
TEST(JobsTest, WithoutADescriptorAJobThatRunsIsNotTakenForOneThatHasEnded) {
  const test::TemporaryDirectory folder;
  auto store = store::Store::open(folder.path() + "/kymo.db");
  ASSERT_TRUE(store.ok());
  auto metrics = Metrics::make();
  ASSERT_TRUE(metrics.ok());
  Jobs jobs(**store, **metrics, folder.path());
  const Result<store::Job> job =
      jobs.adopt({getpid(), probe::read_process(getpid())->start_ticks}, "work");
  ASSERT_TRUE(job.ok()) << job.error().message;
  {
    const test::NoDescriptors none;
    jobs.refresh();
  }
  EXPECT_EQ((*store)->job(job->id)->state, store::JobState::running);
}

class ContainerJobs : public testing::Test {
 protected:
  void SetUp() override {
    auto store = store::Store::open(folder_.path() + "/kymo.db");
    ASSERT_TRUE(store.ok());
    store_ = std::move(store).value();
    metrics_ = std::move(Metrics::make()).value();
    jobs_ = std::make_unique<Jobs>(*store_, *metrics_, folder_.path(),
                                   [this](const ContainerOf&) { return runs_as_; });
  }
  // A job whose process is gone, and that is this container.
  std::string job(const std::string& name) {
    const probe::Process self = probe::read_process(getpid()).value();
    const store::Job made = jobs_->adopt({self.pid, self.start_ticks + 1}, name).value();
    EXPECT_TRUE(jobs_->containers().note(made.id, {runtime::Kind::podman, "abc"}).ok());
    return made.id;
  }

  test::TemporaryDirectory folder_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<Metrics> metrics_;
  std::unique_ptr<Jobs> jobs_;
  std::optional<runtime::ProcessId> runs_as_;
};

TEST_F(ContainerJobs, AJobThatCountedAsExitedFollowsItsContainer) {
  const std::string id = job("shop");
  EXPECT_EQ(jobs_->list()->front().state(), v1::Job::EXITED);
  const probe::Process self = probe::read_process(getpid()).value();
  runs_as_ = {self.pid, self.start_ticks};
  const v1::Job now = jobs_->list()->front();
  EXPECT_EQ(now.state(), v1::Job::RUNNING);
  EXPECT_EQ(now.pid(), self.pid);
  EXPECT_EQ(now.runtime(), v1::PODMAN);
  EXPECT_EQ(now.container(), "abc");
  EXPECT_EQ(jobs_->of_container({runtime::Kind::podman, "abc"})->id, id);
  EXPECT_FALSE(jobs_->of_container({runtime::Kind::runc, "abc"}));
}

TEST_F(ContainerJobs, OfTwoJobsOfOneContainerTheNewerFollowsIt) {
  job("old");
  job("new");
  const probe::Process self = probe::read_process(getpid()).value();
  runs_as_ = {self.pid, self.start_ticks};
  const auto list = jobs_->list().value();
  EXPECT_EQ(list[0].state(), v1::Job::EXITED) << list[0].name();
  EXPECT_EQ(list[1].state(), v1::Job::RUNNING) << list[1].name();
}

// It became podman's.
TEST_F(ContainerJobs, ARuntimeOfAnotherVersionIsNamed) {
  folder_.folder("jobs");
  folder_.folder("jobs/j1");
  folder_.file("jobs/j1/container.json", R"({"runtime": "lxc", "id": "abc"})");
  const auto container = jobs_->containers().of("j1");
  ASSERT_FALSE(container.ok());
  EXPECT_EQ(container.error().code, Code::unimplemented);
  EXPECT_NE(container.error().message.find("names the runtime 'lxc'"), std::string::npos);
  EXPECT_FALSE(jobs_->containers().of("j2").value().has_value()) << "a plain process";
  EXPECT_NE(kind_named("lxc").error().message.find("'lxc'"), std::string::npos);
  EXPECT_FALSE(kind_of(static_cast<v1::Runtime>(7)).ok());
}

}  // namespace
}  // namespace kymo::daemon
