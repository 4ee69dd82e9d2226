#include "daemon/config.h"

#include <gtest/gtest.h>

#include "support/temporary_directory.h"

namespace kymo::daemon {
namespace {

// A configuration in which nothing is wrong.
Config good(const test::TemporaryDirectory& folder) {
  Config config;
  config.criu = folder.file("criu", "#!/bin/sh\n", 0755);
  config.state_dir = folder.path() + "/state";
  config.socket = folder.path() + "/socket";
  return config;
}

std::string refusal(Config config) {
  const Result<void> checked = resolve_and_check(config);
  return checked ? "" : checked.error().message;
}

TEST(ConfigTest, HostAndPort) {
  EXPECT_EQ(parse_host_port("127.0.0.1:9418")->port, 9418);
  EXPECT_EQ(parse_host_port("localhost:0")->host, "localhost");
  EXPECT_EQ(parse_host_port("[::1]:80")->host, "::1");
  for (const char* bad :
       {"", "9418", ":80", "host:", "host:x", "host:70000", "host:-1", "::1:80", "[::1]"}) {
    EXPECT_FALSE(parse_host_port(bad).ok()) << bad;
  }
}

TEST(ConfigTest, ListsOfMetrics) {
  Config config;
  ASSERT_TRUE(set_profiling_metrics(config, "dumps,phase").ok());
  EXPECT_EQ(config.profiling_metrics, (std::vector<std::string>{"dumps", "phase"}));
  ASSERT_TRUE(set_profiling_metrics(config, "all").ok());
  EXPECT_TRUE(config.profiling && config.profiling_metrics.empty());
  ASSERT_TRUE(set_profiling_metrics(config, "none").ok());
  EXPECT_FALSE(config.profiling);
  for (const char* bad : {"", ",", "a,", ",a", "a,,b"}) {
    EXPECT_FALSE(set_profiling_metrics(config, bad).ok()) << bad;
  }
}

TEST(ConfigTest, AGoodOneIsMadeAbsolute) {
  const test::TemporaryDirectory folder;
  Config config = good(folder);
  config.profiling_log = "relative.tsv";
  ASSERT_TRUE(resolve_and_check(config).ok());
  EXPECT_EQ(config.profiling_log.front(), '/');
}

TEST(ConfigTest, CriuIsFoundOnPath) {
  const test::TemporaryDirectory folder;
  Config config = good(folder);
  config.criu = "sh";
  ASSERT_TRUE(resolve_and_check(config).ok());
  EXPECT_EQ(config.criu.front(), '/');
}

TEST(ConfigTest, EachRefusalNamesTheOptionAndItsValue) {
  const test::TemporaryDirectory folder;
  Config config = good(folder);
  config.profiling_interval = std::chrono::microseconds(0);
  EXPECT_NE(refusal(config).find("--profiling-metrics-rate-us 0"), std::string::npos);
  config = good(folder);
  config.profiling_log = folder.path() + "/missing/x.tsv";
  EXPECT_NE(refusal(config).find("/missing does not exist"), std::string::npos);
  config.profiling_log = folder.file("there.tsv", "");
  EXPECT_NE(refusal(config).find("the file exists"), std::string::npos);
  config.profiling_log = folder.path() + "/x.txt";
  EXPECT_NE(refusal(config).find("must end in .tsv"), std::string::npos);
  config.profiling_log = folder.path() + "/x.tsv";
  config.profiling = false;
  EXPECT_NE(refusal(config).find("--profiling-metrics=none"), std::string::npos);
  config = good(folder);
  config.criu = folder.file("plain", "");
  EXPECT_NE(refusal(config).find("--criu " + config.criu), std::string::npos);
  config = good(folder);
  config.socket = folder.path() + "/" + std::string(120, 's');
  EXPECT_NE(refusal(config).find("longer than the 107 characters"), std::string::npos);
}

}  // namespace
}  // namespace kymo::daemon
