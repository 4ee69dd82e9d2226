#include "runtime/host_check.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include "support/real_criu.h"
#include "support/temporary_directory.h"

namespace kymo::runtime {
namespace {

// PATH while it lives.
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

const Finding& finding(const std::vector<Finding>& findings, const std::string& what) {
  for (const Finding& one : findings) {
    if (one.what == what) {
      return one;
    }
  }
  ADD_FAILURE() << "nothing said of " << what;
  return findings.front();
}

TEST(HostCheckTest, AWorkingCriuIsGood) {
  KYMO_NEEDS_CRIU();
  const std::vector<Finding> findings = check_host(test::criu_path());
  for (const char* what : {"root", "criu", "criu check"}) {
    EXPECT_EQ(finding(findings, what).state, Finding::State::good)
        << finding(findings, what).detail;
  }
  EXPECT_NE(finding(findings, "criu").detail.find(test::criu_path()), std::string::npos);
  EXPECT_NE(finding(findings, "dirty tracking").state, Finding::State::bad);
}

TEST(HostCheckTest, AMissingCriuIsBadAndNamed) {
  const std::vector<Finding> findings = check_host("/nowhere/criu");
  EXPECT_EQ(finding(findings, "criu").state, Finding::State::bad);
  EXPECT_NE(finding(findings, "criu").detail.find("/nowhere/criu"), std::string::npos);
}

TEST(HostCheckTest, RuntimesFindTheCriuThatPathHasFirst) {
  const test::TemporaryDirectory folder;
  folder.file("runc", "#!/bin/sh\necho runc version 9.9\n", 0755);
  const PathIs path(folder.path() + ":/usr/bin:/bin");
  {
    const std::vector<Finding> findings = check_host("/nowhere/criu");
    EXPECT_NE(finding(findings, "runc").detail.find("runc version 9.9 at " + folder.path()),
              std::string::npos);
  }
  folder.file("criu", "#!/bin/sh\nexit 1\n", 0755);
  const std::vector<Finding> findings = check_host("/nowhere/criu");
  EXPECT_EQ(finding(findings, "criu of runc, podman").state, Finding::State::absent);
  EXPECT_NE(finding(findings, "criu of runc, podman").detail.find(folder.path() + "/criu"),
            std::string::npos);
}

}  // namespace
}  // namespace kymo::runtime
