#include "checkpoint/failures/explain.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <nlohmann/json.hpp>

#include "checkpoint/failures/catalogue.h"

namespace kymo::failures {
namespace {

Root root_at(const std::string& line) {
  Root root;
  root.line = line;
  root.failed = true;
  return root;
}

TEST(Explain, SaysWhatHappenedToWhichFileAndWhatToDo) {
  const Explanation why =
      explain(root_at("Error (criu/files-reg.c:1): Can't dump ghost file /tmp/g of 2000000 size"));
  EXPECT_EQ(why.id, "ghost-big");
  EXPECT_NE(why.what.find("/tmp/g"), std::string::npos);
  EXPECT_EQ(why.remedy.find("Pass --ghost-limit 2M (for a container"), 0U) << why.remedy;
  EXPECT_EQ(to_json(why).at("id"), "ghost-big");
  EXPECT_NE(text_of(why, "/x/dump.log").find("/x/dump.log"), std::string::npos);
}

// Headlines began with "Criu" and "Runc".
TEST(Explain, ProgramsKeepTheirNamesAtTheBeginningOfTheHeadline) {
  const auto headline = [](const char* what) {
    Explanation why;
    why.what = what;
    return text_of(why, "");
  };
  EXPECT_EQ(headline("criu cannot be started").find("CRIU cannot be started.\n"), 0U);
  EXPECT_EQ(headline("runc checkpoint failed").find("runc checkpoint failed.\n"), 0U);
  EXPECT_EQ(headline("podman: no such container").find("podman: no"), 0U);
  EXPECT_EQ(headline("a process holds a lock").find("A process"), 0U);
  EXPECT_EQ(headline("criuless").find("Criuless"), 0U);
}

TEST(Explain, SaysThatAFailureIsUnknownAndShowsItsLine) {
  const Explanation why = explain(root_at("Error (criu/new.c:1): The flux is off"));
  EXPECT_EQ(why.id, "unknown");
  EXPECT_NE(one_line(why).find("The flux is off"), std::string::npos);
}

TEST(Explain, IsFoundAgainInTheMessageOfARequest) {
  const Explanation why =
      explain(root_at("Error (criu/files-reg.c:1): Can't dump ghost file /tmp/g of 9 size"));
  const Explanation again =
      of_error({Code::failed_precondition, "dump process 7: " + one_line(why) +
                                               " (log: /x/dump.log); the process (7) runs on"});
  EXPECT_EQ(again.id, why.id);
  EXPECT_EQ(again.root, why.root);
  EXPECT_EQ(again.what, why.what);
  EXPECT_EQ(again.remedy, why.remedy);
}

// 512 MiB were advised for a file of 5 MiB.
TEST(Explain, AdvisesTheNextLimitThatIsEnough) {
  const Entry& entry = entry_of("ghost-big");
  const auto advises = [&](std::uint64_t bytes, const std::string& limit) {
    return remedy_for(entry, bytes).find("--ghost-limit " + limit + " ") != std::string::npos;
  };
  constexpr std::uint64_t kMebi = 1U << 20U;
  EXPECT_TRUE(advises(5 * kMebi, "8M"));
  EXPECT_TRUE(advises(8 * kMebi, "8M"));
  EXPECT_TRUE(advises(8 * kMebi + 1, "16M"));
  EXPECT_TRUE(advises(3000 * kMebi, "4095M"));
  EXPECT_EQ(remedy_for(entry, 4096 * kMebi).find("--ghost-limit"), std::string::npos);
}

// The remedy of the catalogue, for all causes, was given where kymod had named the tracer.
TEST(Explain, KeepsTheRemedyOfWhatKymodFound) {
  const Explanation why = of_error(
      {Code::failed_precondition,
       "dump process 7: it would fail: a process is traced already (process 7 web, thread 7, "
       "tracer "
       "9 gdb). End the tracer, and dump again. (failure cannot-attach). Pass --force to skip this "
       "check"});
  EXPECT_EQ(why.id, "cannot-attach");
  EXPECT_EQ(why.what, "a process is traced already (process 7 web, thread 7, tracer 9 gdb)");
  EXPECT_EQ(why.remedy, "End the tracer, and dump again.");
}

TEST(Explain, KnowsFailuresOfKymodByTheirError) {
  EXPECT_EQ(of_error({Code::deadline_exceeded, "it did not end"}).id, "deadline");
  EXPECT_EQ(of_error({Code::permission_denied, "no"}).id, "permission");
  EXPECT_EQ(of_error({Code::unavailable, "kymod stopped during the dump; process 7 runs on"}).id,
            "kymod-ended");
  EXPECT_EQ(
      of_error({Code::unavailable, "kymod stopped during the restore; it can be restored"}).id,
      "kymod-ended");
  EXPECT_EQ(of_error({Code::resource_exhausted, "the disk of /x is full"}).id, "disk-full");
  EXPECT_EQ(of_error({Code::resource_exhausted, "cannot write /x", ENOSPC}).id, "disk-full");
  EXPECT_EQ(of_error({Code::resource_exhausted, "out of memory", ENOMEM}).id, "unknown");
  EXPECT_EQ(of_error({Code::internal, "x"}).id, "unknown");
}

TEST(Explain, TheTimeOfARequestIsFoundAgainWithWhatWouldHaveHelped) {
  Error error{Code::deadline_exceeded, "dump process 7: it did not end within its deadline of 2 s"};
  const Explanation before = of_error(error);
  add_time(error, "The longest phase took 99 %. kymod waited for the disk for 97 % of it",
           "Use a faster disk.");
  const Explanation why = of_error(error);
  EXPECT_EQ(why.id, "deadline");
  EXPECT_EQ(why.what, before.what);
  EXPECT_EQ(why.why,
            before.why + " The longest phase took 99 %. kymod waited for the disk for 97 % of it.");
  EXPECT_EQ(why.remedy, "Use a faster disk.");
  // The history keeps no code, but the id.
  error.code = Code::internal;
  EXPECT_EQ(of_error(error).id, "unknown");
  EXPECT_EQ(of_error(error, "deadline").why, why.why);
  EXPECT_EQ(of_error(error, "deadline").remedy, why.remedy);

  Error cancelled{Code::cancelled, "the request was cancelled"};
  const std::string remedy = of_error(cancelled).remedy;
  add_time(cancelled, "No cause stands out", "");
  EXPECT_EQ(of_error(cancelled).remedy, remedy);
  EXPECT_EQ(of_error(cancelled).what, "the request was cancelled");
}

TEST(Explain, KnowsWhyKymodRefusesARequest) {
  const std::string_view with_ids[][2] = {
      {"damaged-images", "restore /c: its images are damaged: pages-1.img: it is missing"},
      {"older-criu", "restore /c: CRIU 4.2 made its images, which CRIU 4.1 cannot read: start"},
      {"images-changed",
       "dump process 7: another program changed the images: /c/a.img was removed"},
      {"in-use", "restore /c: another request uses it: wait for that to end"},
      {"in-use", "dump process 7: it is being dumped already: wait for that to end"},
      {"pid-taken", "restore /c: its pid 7 is in use by 'web'; end that process first"},
      {"disk-full", "dump process 7: there is no room for its images: about 9 MiB"},
  };
  for (const auto& [id, error] : with_ids) {
    const Code code = id == "damaged-images" ? Code::data_loss
                      : id == "disk-full"    ? Code::resource_exhausted
                                             : Code::failed_precondition;
    EXPECT_EQ(of_error({code, std::string(error)}).id, id) << error;
  }
  EXPECT_EQ(of_error({Code::not_found, "there is no job x"}).id, "not-found");
  EXPECT_EQ(of_error({Code::failed_precondition, "dump job x: it is not running"}).id, "not-now");
  EXPECT_EQ(of_error({Code::unavailable, "try again"}).id, "not-known-yet");
  EXPECT_EQ(of_error({Code::invalid_argument, "x"}).id, "wrong-request");
  EXPECT_EQ(of_error({Code::unimplemented, "x"}).id, "unsupported");
  EXPECT_EQ(of_error({Code::not_found, "x. y (failure unknown)"}).id, "unknown")
      << "the code of a failure of CRIU is not kymod's";
}

TEST(Explain, AFullDiskIsTheCauseUnlessTheLogNamesItItself) {
  Root root = root_at("Error (criu/mount.c:1): mnt: Can't dump tmpfs content");
  root.full_disk = "/c/images";
  const std::string line = one_line(explain(root));
  EXPECT_TRUE(line.starts_with("the disk is full (/c/images: No space left on device). ")) << line;
  EXPECT_TRUE(line.ends_with(" (failure disk-full)")) << line;
  root.line = "Error (criu/image.c:1): write: No space left on device";
  EXPECT_EQ(explain(root).id, "no-space");
  Root no_log;
  no_log.full_disk = "/c/work";
  EXPECT_EQ(explain(no_log).id, "disk-full");
}

TEST(Explain, NamesTheMemoryIfTheKernelKilledWhatCriuRestored) {
  Root root = root_at("Error (criu/cr-restore.c:1269): 22386 killed by signal 9: Killed");
  root.only_step = true;
  EXPECT_EQ(explain(root).id, "only-the-step");
  root.out_of_memory = true;
  EXPECT_EQ(explain(root).id, "memory-limit");
  Root no_log;
  no_log.out_of_memory = true;
  EXPECT_EQ(explain(no_log).id, "memory-limit");
  root = root_at("Error (criu/files-reg.c:1): File a has bad size 1 (expect 2)");
  root.out_of_memory = true;
  EXPECT_EQ(explain(root).id, "file-size") << "the kernel killed another process of the machine";
}

TEST(Explain, KnowsThatACgroupWithoutSpaceIsNoDisk) {
  EXPECT_EQ(explain(root_at("Error (criu/cgroup.c:1): cg: Can't move 1 into cpuset//a/cgroup.procs "
                            "(-1/14): No space left on device"))
                .id,
            "cgroup-restore");
  EXPECT_EQ(explain(root_at("Error (criu/image.c:1): write: No space left on device")).id,
            "no-space");
}

TEST(Explain, KnowsATestOfTheKernelFromARestore) {
  Root root =
      root_at("Error (criu/libnetlink.c:54): -1 reported by netlink: Operation not permitted");
  EXPECT_EQ(explain(root).id, "net-restore");
  root.probe = true;
  EXPECT_EQ(explain(root).id, "kerndat");
}

TEST(Explain, SaysThatCriuDiedIfASignalEndedIt) {
  EXPECT_EQ(of_error({Code::failed_precondition,
                      "criu could not dump process 7: criu '/usr/sbin/criu' was ended by signal 9 "
                      "(SIGKILL); the process runs on"})
                .id,
            "criu-died");
  EXPECT_EQ(of_error({Code::unavailable,
                      "criu could not restore /c/images: criu '/usr/sbin/criu' was ended by signal "
                      "9 (SIGKILL) without an answer"})
                .id,
            "criu-died");
  EXPECT_EQ(of_error({Code::failed_precondition,
                      "runc could not dump container web: read unixpacket @->@: EOF; the container "
                      "runs on"})
                .id,
            "criu-died");
  EXPECT_EQ(of_error({Code::failed_precondition, "dump job x: it was ended by signal 9"}).id,
            "not-now");
}

TEST(Explain, SaysThatCriuDiedIfTheLogHasNoEnd) {
  EXPECT_EQ(explain(Root{}).id, "criu-died");
}

}  // namespace
}  // namespace kymo::failures
