// Logs that other people published. The rule that finds the root line, and the catalogue, were not
// made from them.
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "checkpoint/failures/explain.h"
#include "checkpoint/failures/root_line.h"

namespace kymo::failures {
namespace {

struct PublicLog {
  std::string source;   // OWNER/REPOSITORY#ISSUE
  std::string root;     // a part of the line that a human reader takes for the root
  std::string failure;  // the id of the failure, as a human reader judges it
  std::string first;    // what kymo said about it before anything was improved
  std::string now;      // the id that kymo gives now, if it differs from the reader's
  std::string text;
};

// The value of a line "NAME: VALUE", or nullptr if the line has another name.
bool take(const std::string& line, const std::string& name, std::string& value) {
  if (!line.starts_with(name + ": ")) return false;
  value = line.substr(name.size() + 2);
  return true;
}

std::vector<PublicLog> public_logs() {
  std::ifstream file(KYMO_PUBLIC_LOGS);
  std::vector<PublicLog> logs;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("=== ")) {
      logs.emplace_back().source = line.substr(4);
      continue;
    }
    if (logs.empty()) continue;  // the comment at the top of the file
    PublicLog& log = logs.back();
    if (log.text.empty() && (take(line, "root", log.root) || take(line, "failure", log.failure) ||
                             take(line, "first", log.first) || take(line, "now", log.now))) {
      continue;
    }
    log.text += line + "\n";
  }
  return logs;
}

TEST(PublicLogs, EachHasTheRootThatAReaderFindsAndAllButOneItsExplanation) {
  const std::vector<PublicLog> logs = public_logs();
  std::size_t unexplained = 0;
  for (const PublicLog& log : logs) {
    SCOPED_TRACE(log.source);
    ASSERT_FALSE(log.root.empty() || log.failure.empty() || log.text.empty());
    EXPECT_TRUE(log.first == "right" || log.first == "no entry" || log.first == "other line");
    RootFinder finder;
    finder.add(log.text);
    const Explanation why = explain(finder.finish());
    EXPECT_NE(why.root.find(log.root), std::string::npos) << why.root;
    EXPECT_EQ(why.id, log.now.empty() ? log.failure : log.now) << why.root;
    if (why.id != log.failure) ++unexplained;
  }
  EXPECT_GE(logs.size(), 30U);
  EXPECT_EQ(unexplained, 1U);
}

}  // namespace
}  // namespace kymo::failures
