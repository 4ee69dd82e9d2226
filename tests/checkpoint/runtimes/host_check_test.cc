#include "checkpoint/runtimes/host_check.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <optional>

#include "support/real_criu.h"
#include "support/temporary_directory.h"

namespace kymo::runtime {
namespace {

// Sets PATH as long as this object exists.
class PathIs {
 public:
  explicit PathIs(const std::string& path) : before_(::getenv("PATH")) {
    ::setenv("PATH", path.c_str(), 1);
  }
  ~PathIs() { ::setenv("PATH", before_.c_str(), 1); }
  PathIs(const PathIs&) = delete;
  PathIs& operator=(const PathIs&) = delete;

 private:
  std::string before_;
};

HostFinding finding(const std::vector<HostFinding>& findings, const std::string& what) {
  for (const HostFinding& one : findings) {
    if (one.what == what) {
      return one;
    }
  }
  ADD_FAILURE() << "there is no finding about " << what;
  return findings.front();
}

TEST(HostCheckTest, AWorkingCriuIsGood) {
  KYMO_NEEDS_CRIU();
  const std::vector<HostFinding> findings = check_host(test::criu_path());
  for (const char* what : {"root", "criu", "criu check"}) {
    EXPECT_EQ(finding(findings, what).state, HostFinding::State::good)
        << finding(findings, what).detail;
  }
  EXPECT_NE(finding(findings, "criu").detail.find(test::criu_path()), std::string::npos);
  EXPECT_NE(finding(findings, "dirty tracking").state, HostFinding::State::bad);
}

TEST(HostCheckTest, AMissingCriuIsBadAndNamed) {
  const std::vector<HostFinding> findings = check_host("/nowhere/criu");
  EXPECT_EQ(finding(findings, "criu").state, HostFinding::State::bad);
  EXPECT_NE(finding(findings, "criu").detail.find("/nowhere/criu"), std::string::npos);
}

// A program in place of criu. It answers only the call that asks for its version.
std::string criu_that_starts(const test::TemporaryDirectory& folder, const std::string& name) {
  return folder.file(name, "#!/bin/sh\nexec " + test::criu_path() + " \"$@\"\n", 0755);
}

TEST(HostCheckTest, SaysOfEachRuntimeWhichCriuItWillFind) {
  KYMO_NEEDS_CRIU();
  const test::TemporaryDirectory folder;
  folder.file("runc", "#!/bin/sh\necho runc version 9.9\n", 0755);
  folder.file("podman",
              "#!/bin/sh\ncase \"$*\" in\n--version) echo podman version 8.8;;\n"
              "*Name*) echo crun;;\n*Path*) echo /opt/crun;;\nesac\n",
              0755);
  const PathIs path(folder.path() + ":/usr/bin:/bin");
  const std::string own = criu_that_starts(folder, "my-criu");
  folder.file("criu", "#!/bin/sh\nexit 1\n", 0755);
  std::vector<HostFinding> findings = check_host(own);
  EXPECT_NE(finding(findings, "runc").detail.find("runc version 9.9 at " + folder.path()),
            std::string::npos);
  for (const char* name : {"criu of runc", "criu of podman"}) {
    const HostFinding found = finding(findings, name);
    EXPECT_EQ(found.state, HostFinding::State::good) << found.detail;
    EXPECT_NE(found.detail.find(" at " + own), std::string::npos) << found.detail;
  }
  const std::optional<HostFinding> by_hand = check_criu_by_hand(own);
  ASSERT_TRUE(by_hand.has_value());
  EXPECT_EQ(by_hand->state, HostFinding::State::absent);
  EXPECT_NE(by_hand->detail.find(folder.path() + "/criu does not start"), std::string::npos)
      << by_hand->detail;
  EXPECT_NE(
      finding(findings, "criu of podman").detail.find(", by its libcriu through crun at /opt/crun"),
      std::string::npos);
  // kymod has no criu of its own, so all runtimes use the one on PATH.
  EXPECT_FALSE(check_criu_by_hand("criu").has_value());
  findings = check_host("criu");
  EXPECT_EQ(finding(findings, "criu of runc").state, HostFinding::State::absent);
  EXPECT_EQ(
      finding(findings, "criu of runc").detail,
      folder.path() + "/criu does not start: put the folder of a criu that starts first in PATH");
}

TEST(HostCheckTest, ARuntimeThatIsNotThereFindsNothing) {
  const test::TemporaryDirectory folder;
  const PathIs path(folder.path());
  for (const HostFinding& one : check_host("/nowhere/criu")) {
    EXPECT_FALSE(one.what.starts_with("criu of ")) << one.detail;
  }
}

TEST(HostCheckTest, PodmanIsAskedWithTheFlagsThatKymodGivesIt) {
  const test::TemporaryDirectory folder;
  folder.file(
      "podman",
      "#!/bin/sh\ncase \"$*\" in\n--version) echo podman version 8.8;;\n"
      "'--runtime crun info'*Name*) echo crun;;\n*Name*) echo runc;;\n*Path*) echo /opt/x;;\n"
      "esac\n",
      0755);
  const PathIs path(folder.path() + ":/usr/bin:/bin");
  RuntimeSettings settings;
  settings.podman_flags = {"--runtime", "crun"};
  const std::string asked =
      finding(check_host("/nowhere/criu", "", settings), "criu of podman").detail;
  EXPECT_NE(asked.find(" through crun at /opt/x"), std::string::npos) << asked;
}

TEST(HostCheckTest, APodmanThatTellsNoRuntimeIsSaid) {
  const test::TemporaryDirectory folder;
  folder.file("podman", "#!/bin/sh\n[ \"$1\" = --version ] && echo podman version 8.8\n", 0755);
  const PathIs path(folder.path() + ":/usr/bin:/bin");
  EXPECT_NE(finding(check_host("/nowhere/criu"), "criu of podman").detail.find("does not name"),
            std::string::npos);
}

}  // namespace
}  // namespace kymo::runtime
