// What an operator asks first: does kymod work, and which CRIU does it use?

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "kymo/version.h"
#include "programs.h"
#include "support/real_criu.h"
#include "support/temporary_directory.h"

namespace kymo::test {
namespace {

TEST(StatusTest, SaysWhetherKymodWorksAndWithWhichCriu) {
  KYMO_NEEDS_CRIU();
  Kymod kymod({"--criu", criu_path()});
  kymod.start();
  const nlohmann::json status = kymod.kymo_json({"status"});
  EXPECT_EQ(status["version"], KYMO_VERSION);
  EXPECT_EQ(status["pid"], kymod.pid());
  EXPECT_EQ(status["healthy"], true);
  EXPECT_EQ(status["criu"]["path"], criu_path());
  EXPECT_GT(status["uptime_ns"], 0);
  EXPECT_EQ(status["recorder"]["running"], true);
  const Outcome text = kymod.kymo({"status"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  for (const char* word : {"health", "good", "CRIU", "up for", "recorder"}) {
    EXPECT_NE(text.out.find(word), std::string::npos) << text.out;
  }
  EXPECT_EQ(kymod.kymo({"status", "-q"}).out, "");
  kymod.stop(SIGTERM);
  const Outcome none = kymod.kymo({"status"});
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_NE(none.err.find("start kymod"), std::string::npos) << none.err;
}

TEST(StatusTest, ACheckAsksTheKymodThatRuns) {
  KYMO_NEEDS_CRIU();
  Kymod kymod({"--criu", criu_path()});
  kymod.start();
  const auto criu_in = [](const nlohmann::json& findings) -> std::string {
    for (const nlohmann::json& finding : findings) {
      if (finding["what"] == "criu") return finding["detail"];
    }
    return "";
  };
  const Outcome asked = kymod.kymo({"check", "--json"});
  const nlohmann::json findings = nlohmann::json::parse(asked.out);
  EXPECT_NE(criu_in(findings).find(" at " + criu_path()), std::string::npos) << asked.out;
  EXPECT_EQ(findings[0]["what"], "kymod");
  const Outcome named = kymod.kymo({"check", "--json", "--criu", "/nonexistent/criu"});
  EXPECT_EQ(named.exit_code, 1) << "the user named a criu that does not work";
}

// Sets a variable of this program, and of those that it starts, as long as this object exists.
class VariableIs {
 public:
  VariableIs(const char* name, const std::string& value) : name_(name) {
    if (const char* const now = std::getenv(name); now != nullptr) before_ = now;
    ::setenv(name, value.c_str(), 1);
  }
  ~VariableIs() {
    if (before_) {
      ::setenv(name_, before_->c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }
  VariableIs(const VariableIs&) = delete;
  VariableIs& operator=(const VariableIs&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

TEST(StatusTest, ACheckIsMadeWithTheEnvironmentOfTheKymodThatRuns) {
  KYMO_NEEDS_CRIU();
  Kymod kymod({"--criu", criu_path()});
  const TemporaryDirectory programs;
  for (const std::string name : {"runc", "containerd"}) {
    programs.file(name, "#!/bin/sh\necho " + name + " 9.9 of kymod\n", 0755);
  }
  {
    const VariableIs path("PATH", programs.path() + ":" + std::getenv("PATH"));
    const VariableIs address("CONTAINERD_ADDRESS", "/nowhere/of-kymod.sock");
    kymod.start();
  }
  const VariableIs address("CONTAINERD_ADDRESS", "/nowhere/of-shell.sock");
  std::string found;
  for (const nlohmann::json& finding : nlohmann::json::parse(kymod.kymo({"check", "--json"}).out)) {
    found +=
        finding["what"].get<std::string>() + ": " + finding["detail"].get<std::string>() + "\n";
  }
  EXPECT_NE(found.find("runc: runc 9.9 of kymod at " + programs.path()), std::string::npos)
      << found;
  EXPECT_NE(found.find("no program listens on /nowhere/of-kymod.sock"), std::string::npos) << found;
  EXPECT_EQ(found.find("of-shell"), std::string::npos) << found;
}

}  // namespace
}  // namespace kymo::test
