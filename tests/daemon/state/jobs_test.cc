#include "daemon/state/jobs.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <future>
#include <memory>
#include <string>
#include <utility>

#include "base/proc/boot.h"
#include "base/proc/process.h"
#include "checkpoint/runtimes/table.h"
#include "daemon/state/kinds.h"
#include "support/job_parts.h"
#include "support/no_descriptors.h"

namespace kymo::daemon {
namespace {

const runtime::Kind kRunc = runtime::kind_named("runc").value();
const runtime::Kind kPodman = runtime::kind_named("podman").value();

TEST(JobsTest, HowAJobEndedIsKnownAsSoonAsItCountsAsEnded) {
  JobParts parts;
  // Holds the reaper back after it has seen the end of the process and before it reports it.
  std::promise<void> seen;
  std::promise<void> tell;
  runtime::RuntimeSettings settings;
  settings.exited = [&](const runtime::ProcessId& process, int wait_status) {
    seen.set_value();
    tell.get_future().wait();
    parts.jobs.exited(process, wait_status);
  };
  const runtime::Runtimes runtimes(settings);

  v1::RunRequest request;
  request.set_name("work");
  for (const char* word : {"/bin/sh", "-c", "exit 3"}) request.add_command(word);
  const Result<store::Job> job = parts.jobs.run(runtimes, request);
  ASSERT_TRUE(job.ok()) << job.error().message;
  seen.get_future().wait();
  EXPECT_FALSE(probe::process_lives(job->pid, job->start_ticks));
  EXPECT_EQ(parts.jobs.list().front().state(), v1::Job::RUNNING);
  tell.set_value();
  EXPECT_TRUE(
      test::eventually([&] { return parts.jobs.list().front().state() == v1::Job::EXITED; }));
  EXPECT_EQ(parts.jobs.list().front().exit_code(), 3);
}

TEST(JobsTest, WithoutADescriptorAJobThatRunsIsNotTakenForOneThatHasEnded) {
  JobParts parts;
  const Result<store::Job> job =
      parts.jobs.adopt({getpid(), probe::read_process(getpid())->start_ticks}, "work");
  ASSERT_TRUE(job.ok()) << job.error().message;
  {
    const test::NoDescriptors none;
    parts.jobs.refresh();
  }
  EXPECT_EQ(parts.store->job(job->id)->state, store::JobState::running);
}

TEST(JobsTest, AJobWhoseProcessEndedInItsDumpIsNotSaidToRun) {
  JobParts parts;
  const probe::Process self = probe::read_process(getpid()).value();
  const store::Job job = parts.jobs.adopt({self.pid, self.start_ticks}, "work").value();
  const Jobs::Hold held = parts.jobs.hold(job.id, Jobs::Doing::dump);
  v1::Job seen = parts.jobs.list().front();
  EXPECT_EQ(seen.state(), v1::Job::RUNNING);
  EXPECT_EQ(seen.pending(), "it is being dumped");
  store::Job gone = job;
  ++gone.start_ticks;  // now the pid belongs to another process
  parts.store->note_job(gone);
  seen = parts.jobs.list().front();
  EXPECT_EQ(seen.state(), v1::Job::DUMPING);
  EXPECT_EQ(
      seen.pending(),
      "it is being dumped; its process has ended, and its images are not all on their disk yet");
}

// `kymo kill` sent the signal to whatever had the pid and the start time of the job.
TEST(JobsTest, AfterARestartOfTheMachineAnotherProcessIsNotTakenForTheJob) {
  JobParts parts;
  const probe::Process self = probe::read_process(getpid()).value();
  store::Job job = parts.jobs.adopt({self.pid, self.start_ticks}, "work").value();
  EXPECT_EQ(job.boot_id, probe::boot_id());
  EXPECT_EQ(life_of(job), probe::Life::runs);
  job.boot_id = "of an earlier boot";
  ASSERT_TRUE(parts.store->update_job(job).ok());
  EXPECT_EQ(life_of(job), probe::Life::ended);
  EXPECT_FALSE(parts.jobs.of_process({self.pid, self.start_ticks}));
  parts.jobs.refresh();
  EXPECT_EQ(parts.store->job(job.id)->state, store::JobState::exited);
}

TEST(JobsTest, AJobThatIsTakenOverKeepsItsIdAndItsNameIfThatIsFree) {
  JobParts parts;
  const auto take_over = [&](const std::string& id, const std::string& name) {
    store::Job job;
    job.id = id;
    job.name = name;
    job.command = {"/usr/bin/server", "--port", "1"};
    const Result<store::Job> taken = parts.jobs.take_over(std::move(job));
    EXPECT_TRUE(taken.ok());
    if (!taken) return std::string();
    const store::Job seen = parts.store->job(id).value();
    EXPECT_EQ(seen.state, store::JobState::dumped);
    return seen.name;
  };
  EXPECT_EQ(take_over("j000000000001", "web"), "web");
  EXPECT_EQ(take_over("j000000000002", "web"), "web-1");
  EXPECT_EQ(take_over("j000000000003", "../web"), "server-1");
  EXPECT_EQ(take_over("j000000000004", ""), "server-2");
}

// A checkpoint.json, which another user may have written, has such an id.
TEST(JobsTest, OnlyAnIdThatKymodCouldHaveMadeIsOne) {
  EXPECT_TRUE(is_job_id("j0123456789ab"));
  for (const char* no : {"", "j", "j0123456789a", "j0123456789abc", "x0123456789ab",
                         "j0123456789AB", "j../../etc/ab", "j01234/6789ab"}) {
    EXPECT_FALSE(is_job_id(no)) << no;
  }
}

struct ContainerJobs : testing::Test, JobParts {
  // A job whose process has ended. It is noted as this container of podman.
  std::string job(const std::string& name) {
    const probe::Process self = probe::read_process(getpid()).value();
    const store::Job made = jobs.adopt({self.pid, self.start_ticks + 1}, name).value();
    EXPECT_TRUE(jobs.containers().note(made.id, {kPodman, "abc"}).ok());
    return made.id;
  }
};

TEST_F(ContainerJobs, AJobThatCountedAsExitedFollowsItsContainer) {
  const std::string id = job("shop");
  EXPECT_EQ(jobs.list().front().state(), v1::Job::EXITED);
  const probe::Process self = probe::read_process(getpid()).value();
  container = {self.pid, self.start_ticks};
  const v1::Job now = jobs.list().front();
  EXPECT_EQ(now.state(), v1::Job::RUNNING);
  EXPECT_EQ(now.pid(), self.pid);
  EXPECT_EQ(now.runtime(), v1::PODMAN);
  EXPECT_EQ(now.container(), "abc");
  EXPECT_EQ(jobs.of_container({kPodman, "abc"})->id, id);
  EXPECT_FALSE(jobs.of_container({kRunc, "abc"}));
}

TEST_F(ContainerJobs, OfTwoJobsOfOneContainerTheNewerFollowsIt) {
  job("old");
  job("new");
  const probe::Process self = probe::read_process(getpid()).value();
  container = {self.pid, self.start_ticks};
  const auto list = jobs.list();
  EXPECT_EQ(list[0].state(), v1::Job::EXITED) << list[0].name();
  EXPECT_EQ(list[1].state(), v1::Job::RUNNING) << list[1].name();
}

TEST_F(ContainerJobs, ARuntimeOfAnotherVersionIsNamed) {
  folder.folder("jobs");
  folder.folder("jobs/j1");
  folder.file("jobs/j1/container.json", R"({"runtime": "lxc", "id": "abc"})");
  const auto unknown = jobs.containers().of("j1");
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().code, Code::unimplemented);
  EXPECT_NE(unknown.error().message.find("names the runtime 'lxc'"), std::string::npos);
  EXPECT_FALSE(jobs.containers().of("j2").value().has_value())
      << "a job without the file is a plain process";
  EXPECT_NE(kind_named("lxc").error().message.find("'lxc'"), std::string::npos);
  EXPECT_FALSE(kind_of(static_cast<v1::Runtime>(77)).ok());
}

TEST(KindsTest, EveryRuntimeOfTheTableIsOneOfTheApiAndTheReverse) {
  std::size_t values = 0;
  for (int value = v1::Runtime_MIN; value <= v1::Runtime_MAX; ++value) {
    const auto runtime = static_cast<v1::Runtime>(value);
    if (!v1::Runtime_IsValid(value) || runtime == v1::RUNTIME_UNSPECIFIED) continue;
    ++values;
    ASSERT_TRUE(kind_of(runtime).ok()) << v1::Runtime_Name(runtime);
    EXPECT_EQ(to_api(*kind_of(runtime)), runtime);
  }
  EXPECT_EQ(runtime::runtime_table().size(), values);
}

}  // namespace
}  // namespace kymo::daemon
