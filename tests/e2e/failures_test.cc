// Processes that CRIU cannot dump, each for a different reason. `kymo check process` must foresee
// the reason, the explanation of the failed dump must name it, and the process must run on. Healthy
// processes must not be refused, and must be dumped and restored. Without --force, kymod must
// refuse those dumps that are sure to fail.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "programs.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

using nlohmann::json;

struct Stubborn {
  const char* reason;
  const char* foreseen;  // the grade that kymo check must give
  std::vector<std::string> flags{};
};

class FailuresTest : public testing::Test {
 protected:
  void SetUp() override {
    KYMO_NEEDS_CRIU();
    kymod_.start();
  }

  // Starts `stubborn.py REASON`. Returns false if this kernel does not let the program open what
  // CRIU cannot dump.
  bool start(const std::string& reason) {
    job_ = kymod_.kymo_json({"run", "process", "--name", reason, "--", "/usr/bin/python3",
                             STUBBORN_PROGRAM, reason, kymod_.folder().path()});
    EXPECT_TRUE(eventually([&] { return printed().find('\n') != std::string::npos; }))
        << read_file(job_["stderr_path"]);
    if (printed().starts_with("ready")) return true;
    cannot_.push_back(reason + " (" + printed().substr(0, printed().find('\n')) + ")");
    return false;
  }

  void expect_explained(const Stubborn& stubborn) {
    const std::string reason = stubborn.reason;
    const std::string checkpoint = kymod_.path(reason);
    std::vector<std::string> words{"dump", "process", reason, "--dir", checkpoint};
    words.insert(words.end(), stubborn.flags.begin(), stubborn.flags.end());
    expect_refused(stubborn, words);
    words.insert(words.end(), {"--force", "--json"});
    const Outcome dumped = kymod_.kymo(words);
    EXPECT_EQ(dumped.exit_code, 1) << dumped.err;
    EXPECT_NE(dumped.err.find("(failure " + reason + "; CRIU: "), std::string::npos) << dumped.err;
    const json why = kymod_.kymo_json({"explain", checkpoint});
    EXPECT_EQ(why["id"], reason) << why;
    EXPECT_TRUE(std::filesystem::exists(std::string(why["log"]))) << why;
    EXPECT_TRUE(kymod_.goes_on(kymod_.job(reason)));
    expect_told_to_programs(json::parse(dumped.out, nullptr, false), why);
  }

  // kymod's reply to a program must contain the same as what `kymo explain` prints.
  static void expect_told_to_programs(const json& told, const json& why) {
    ASSERT_TRUE(told.is_object() && told.contains("failure")) << told;
    EXPECT_NE(told["error"].get<std::string>().find("(failure "), std::string::npos) << told;
    for (const char* field : {"id", "why", "remedy", "retry"}) {
      EXPECT_EQ(told["failure"][field], why[field]) << told;
    }
    EXPECT_NE(told["failure"]["root"], "") << told;
  }

  // Without --force, kymod refuses a dump that is sure to fail. The process runs on, and no file is
  // written.
  void expect_refused(const Stubborn& stubborn, const std::vector<std::string>& words) {
    if (stubborn.foreseen != std::string("refuses")) return;
    const Outcome refused = kymod_.kymo(words);
    EXPECT_EQ(refused.exit_code, 1) << refused.err;
    EXPECT_NE(refused.err.find(": it would fail: "), std::string::npos) << refused.err;
    EXPECT_NE(refused.err.find("Pass --force"), std::string::npos) << refused.err;
    EXPECT_EQ(refused.err.find("CRIU: "), std::string::npos) << refused.err;
    EXPECT_FALSE(std::filesystem::exists(kymod_.path(stubborn.reason))) << refused.err;
    EXPECT_TRUE(kymod_.goes_on(kymod_.job(stubborn.reason)));
  }

  // Checks the process before its dump, and notes whether the failure is foreseen.
  void look_before(const Stubborn& stubborn) {
    std::vector<std::string> words{"check", "process", job_["pid"].dump(), "--json"};
    words.insert(words.end(), stubborn.flags.begin(), stubborn.flags.end());
    const Outcome looked = kymod_.kymo(words);
    const json report = json::parse(looked.out, nullptr, false);
    ASSERT_TRUE(report.is_object()) << looked.out << looked.err;
    EXPECT_EQ(looked.exit_code, report["refusing"] == 0 ? 0 : 1) << looked.out;
    std::string grade = "missed";
    for (const json& finding : report["findings"]) {
      if (finding["failure"] == stubborn.reason) grade = finding["grade"];
    }
    EXPECT_EQ(grade, stubborn.foreseen) << looked.out;
    std::printf("%-20s %s\n", stubborn.reason, grade.c_str());
  }

  std::string printed() const { return read_file(job_["stdout_path"]); }

  Kymod kymod_;
  json job_;
  std::vector<std::string> cannot_;
};

TEST_F(FailuresTest, EachIsForeseenAndExplainedByItsReasonAndTheProcessRunsOn) {
  const std::vector<Stubborn> all{{"tcp-established", "refuses"},
                                  {"tcp-in-flight", "warns", {"--tcp-established"}},
                                  {"socket-proto", "refuses"},
                                  {"udp-corked", "warns"},
                                  {"socket-unknown", "refuses"},
                                  {"unix-external", "refuses"},
                                  {"unix-half", "refuses", {"--ext-unix-sk"}},
                                  {"unix-in-flight", "warns"},
                                  {"fd-unsupported", "refuses"},
                                  {"io-uring-fd", "refuses"},
                                  {"mapping-unsupported", "refuses"},
                                  {"bpf", "warns"},
                                  {"pidfd", "refuses"},
                                  {"pipe-packet", "warns"},
                                  {"ghost-big", "refuses"},
                                  {"link-remap", "refuses"},
                                  {"fsnotify", "warns"},
                                  {"tun", "refuses"},
                                  {"sysv-shm", "refuses"}};
  int explained = 0;
  for (const Stubborn& stubborn : all) {
    SCOPED_TRACE(stubborn.reason);
    if (start(stubborn.reason)) {
      look_before(stubborn);
      expect_explained(stubborn);
      ++explained;
    }
    EXPECT_EQ(kymod_.kymo({"kill", stubborn.reason}).exit_code, 0);
  }
  EXPECT_GE(explained, 15) << "this kernel lets too few of these processes start: "
                           << testing::PrintToString(cannot_);
  const std::string metrics = run({"curl", "-s", "http://" + kymod_.http() + "/metrics"}).out;
  EXPECT_NE(metrics.find("kymo_failures_total{request=\"dump\",reason=\"ghost-big\"} 1"),
            std::string::npos)
      << metrics;
}

}  // namespace
}  // namespace kymo::test
