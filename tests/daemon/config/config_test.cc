#include "daemon/config/config.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "daemon/config/flags.h"
#include "support/temporary_directory.h"

namespace kymo::daemon {
namespace {

// A configuration without an error.
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

TEST(ConfigTest, TheRateOfStacksHasItsRange) {
  const test::TemporaryDirectory folder;
  Config config = good(folder);
  for (const int rate : {0, 19, 99, 999}) {
    config.profiling_stacks = rate;
    EXPECT_EQ(refusal(config), "") << rate;
  }
  for (const int rate : {1, 18, 1000}) {
    config.profiling_stacks = rate;
    EXPECT_NE(refusal(config).find("--profiling-stacks=" + std::to_string(rate) + ": give 19 to"),
              std::string::npos)
        << rate;
  }
}

TEST(ConfigTest, ThePageShowsNoProfilesThatAreNotKept) {
  const test::TemporaryDirectory folder;
  Config config = good(folder);
  config.http_profiles = true;
  EXPECT_EQ(refusal(config), "--http-profiles: kymod keeps no profiles: add --profiles DIR");
  config.profiles = folder.path() + "/profiles";
  EXPECT_EQ(refusal(config), "");
}

TEST(ConfigTest, ProfilesOfServicesCgroupsAndContainersAreKept) {
  const test::TemporaryDirectory folder;
  Config config = good(folder);
  config.profiles = folder.path() + "/profiles";
  config.profiles_only = {"job:web",        "process:nginx", "container:0123456789ab",
                          "cgroup:/docker", "podman:web",    "cgroup:/sys/fs/cgroup/unified/x"};
  EXPECT_EQ(refusal(config), "");
  const std::vector<std::pair<std::string, std::string>> refused{
      {"web", "give job:NAME, container:ID, process:NAME, cgroup:PATH, or a runtime"},
      {"container:web", "give the first 12 digits"},
      {"cgroup:web", "give the folder of a cgroup below /sys/fs/cgroup"},
      {"cgroup:/", "give the folder of a cgroup"},
      {"podman:", "give job:NAME"}};
  for (const auto& [text, why] : refused) {
    config.profiles_only = {text};
    EXPECT_NE(refusal(config).find("--profiles-only " + text + ": " + why), std::string::npos)
        << refusal(config);
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
  EXPECT_EQ(refusal(config), "")
      << "an existing recording is kept, and the new one gets another name";
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

TEST(ConfigTest, FormatsOfTheRecording) {
  Config config;
  ASSERT_TRUE(set_profiling_format(config, "annotated").ok());
  EXPECT_EQ(config.profiling_format, AnnotatedFormat::plain);
  ASSERT_TRUE(set_profiling_format(config, "annotated-lossy").ok());
  EXPECT_EQ(config.profiling_format, AnnotatedFormat::lossy);
  ASSERT_TRUE(set_profiling_format(config, "tsv").ok());
  EXPECT_FALSE(config.profiling_format.has_value());
  for (const char* bad : {"", "TSV", "annotated,lossy", "json"}) {
    const Result<void> set = set_profiling_format(config, bad);
    ASSERT_FALSE(set.ok()) << bad;
    EXPECT_EQ(set.error().message, "--profiling-metrics-format " + std::string(bad) +
                                       ": no such format; there are tsv, annotated and "
                                       "annotated-lossy");
  }
}

TEST(ConfigTest, TheFormatSaysWhereARecordingMayGo) {
  const test::TemporaryDirectory folder;
  Config config = good(folder);
  config.profiling_log = "-";
  EXPECT_NE(refusal(config).find("log cannot hold plain TSV"), std::string::npos);
  config.profiling_format = AnnotatedFormat::lossy;
  EXPECT_EQ(refusal(config), "");
  config.profiling_log = folder.path() + "/x.profile";  // not a TSV file, so any name is permitted
  EXPECT_EQ(refusal(config), "");
  config.profiling_format.reset();
  EXPECT_NE(refusal(config).find("must end in .tsv"), std::string::npos);
  config.profiling_log = folder.path() + "/x.tsv.zst";
  EXPECT_EQ(refusal(config), "");
}

TEST(ConfigTest, CriuHasASecondAtLeastAndADayAtMost) {
  const test::TemporaryDirectory folder;
  Config config = good(folder);
  for (const int seconds : {0, -1, 86401}) {
    config.criu_timeout = std::chrono::seconds(seconds);
    EXPECT_EQ(refusal(config),
              "--criu-timeout " + std::to_string(seconds) + ": must be 1 to 86400 seconds");
  }
  config.criu_timeout = std::chrono::seconds(1);
  EXPECT_EQ(refusal(config), "");
}

TEST(ConfigTest, SpansNeedAnEndpointThatCanBeReadAndTimes) {
  const test::TemporaryDirectory folder;
  Config config = good(folder);
  EXPECT_EQ(config.otlp_endpoint, "") << "off by default";
  config.otlp_endpoint = "https://localhost";
  EXPECT_NE(refusal(config).find("--otlp-endpoint https://localhost: wanted http://HOST"),
            std::string::npos);
  config.otlp_endpoint = "http://localhost";
  EXPECT_EQ(refusal(config), "");
  config.timing = false;
  EXPECT_EQ(refusal(config),
            "--otlp-endpoint http://localhost: there is nothing to send with --no-profiling: leave "
            "out one of them");
}

// A configuration with a recording that can be rotated.
Config rotating(const test::TemporaryDirectory& folder) {
  Config config = good(folder);
  config.profiling_log = folder.path() + "/x.tsv";
  config.profiling_log_rotate_bytes = 1000;
  config.profiling_log_rotate_after = std::chrono::seconds(60);
  config.profiling_log_keep_bytes = 2000;
  return config;
}

TEST(ConfigTest, RotationIsCheckedBeforeAnythingStarts) {
  const test::TemporaryDirectory folder;
  EXPECT_EQ(refusal(rotating(folder)), "");
  Config config = rotating(folder);
  config.profiling_log_rotate_bytes = 1001;
  EXPECT_EQ(refusal(config),
            "--profiling-log-rotate-bytes 1001: at most half of --profiling-log-keep-bytes 2000");
  config.profiling_log_keep_bytes = 0;  // no part is removed
  EXPECT_EQ(refusal(config), "");
  config = rotating(folder);
  config.profiling_log_rotate_after = std::chrono::seconds(-1);
  EXPECT_NE(refusal(config).find("--profiling-log-rotate-after -1"), std::string::npos);
}

TEST(ConfigTest, RotationNeedsARecordingInTsv) {
  const test::TemporaryDirectory folder;
  for (const AnnotatedFormat format : {AnnotatedFormat::plain, AnnotatedFormat::lossy}) {
    Config config = rotating(folder);
    config.profiling_format = format;
    EXPECT_NE(refusal(config).find("only a recording in TSV is rotated"), std::string::npos);
  }
  // Each of the three flags alone is enough to turn rotation on.
  for (int flag = 0; flag < 3; ++flag) {
    Config config = good(folder);
    config.profiling_log_rotate_bytes = flag == 0 ? 1 : 0;
    config.profiling_log_rotate_after = std::chrono::seconds(flag == 1 ? 1 : 0);
    config.profiling_log_keep_bytes = flag == 2 ? 1 : 0;
    EXPECT_NE(refusal(config).find("nothing to rotate without --profiling-metrics-log"),
              std::string::npos);
  }
}

TEST(ConfigTest, TheLogTellsFormatAndRotation) {
  const test::TemporaryDirectory folder;
  const std::vector<std::string> lines = describe(rotating(folder));
  for (const char* line : {"otlp-endpoint = (none)", "profiling-metrics-format = tsv",
                           "profiling-log-rotate-bytes = 1000", "profiling-log-rotate-after = 60",
                           "profiling-log-keep-bytes = 2000"}) {
    EXPECT_EQ(std::count(lines.begin(), lines.end(), line), 1) << line;
  }
}

}  // namespace
}  // namespace kymo::daemon
