#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "programs.h"
#include "support/breakable_criu.h"
#include "support/real_criu.h"

namespace kymo::test {

inline std::string line_of(const std::string& text, std::size_t from) {
  const std::size_t end = text.find('\n', from);
  return end == std::string::npos ? "" : text.substr(from, end - from);
}

// The last complete line that a job has printed.
inline std::string last_line_in(const std::string& path) {
  const std::string text = read_file(path);
  const std::size_t end = text.rfind('\n');
  if (end == std::string::npos || end == 0) return "";
  return line_of(text, text.rfind('\n', end - 1) + 1);
}

class SubjectsTest : public testing::Test {
 protected:
  void SetUp() override {
    KYMO_NEEDS_CRIU();
    kymod_.start();
  }

  // Starts `subject.py WORDS` as the job "subject", and returns the line that it printed when it
  // was ready.
  nlohmann::json start(std::vector<std::string> words) {
    words.insert(words.begin(), {"run", "process", "--name", "subject", "--", "/usr/bin/python3",
                                 SUBJECT_PROGRAM});
    job_ = kymod_.kymo_json(words);
    std::string first;
    EXPECT_TRUE(eventually([&] {
      first = line_of(read_file(output()), 0);
      return !first.empty();
    })) << read_file(job_["stderr_path"]);
    return nlohmann::json::parse(first, nullptr, false);
  }

  std::string output() const { return job_["stdout_path"]; }
  std::string checkpoint() const { return kymod_.path("c"); }

  void dump(const std::vector<std::string>& flags = {}) {
    std::vector<std::string> words{"dump", "process", "subject", "--dir", checkpoint()};
    words.insert(words.end(), flags.begin(), flags.end());
    const Outcome dumped = kymod_.kymo(words);
    EXPECT_EQ(dumped.exit_code, 0) << dumped.err;
    EXPECT_EQ(kymod_.job("subject")["state"], "dumped");
  }

  void restore(const std::vector<std::string>& flags = {}) {
    std::vector<std::string> words{"restore", checkpoint()};
    words.insert(words.end(), flags.begin(), flags.end());
    EXPECT_EQ(kymod_.kymo_json(words)["pid"], job_["pid"]);
    EXPECT_EQ(kymod_.job("subject")["state"], "running");
  }

  // Expects that CRIU refuses a dump because a flag is missing, that the error names this flag, and
  // that the process runs on.
  void expect_refused_for_want_of(const std::string& flag) {
    const Outcome refused =
        kymod_.kymo({"dump", "process", "subject", "--dir", kymod_.path("refused")});
    EXPECT_EQ(refused.exit_code, 1);
    EXPECT_NE(refused.err.find(flag), std::string::npos) << refused.err;
    EXPECT_EQ(kymod_.job("subject")["state"], "running");
  }

  const BreakableCriu criu_;
  Kymod kymod_{{"--criu", criu_.path()}};
  nlohmann::json job_;
};

}  // namespace kymo::test
