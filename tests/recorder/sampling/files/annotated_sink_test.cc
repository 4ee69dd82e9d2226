#include "kymo/annotated_sink.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/adler32.h"
#include "kymo/sink.h"
#include "recorder/metrics/metric_rules.h"
#include "support/file_size_limit.h"
#include "support/temporary_folder.h"

namespace kymo {
namespace {

class AnnotatedSinkTest : public TemporaryFolderTest {
 protected:
  static RecordingInfo info() {
    RecordingInfo info;
    info.columns =
        columns_of({"calls", "Calls", Kind::counter, Unit::count, {{"result", {"ok", "error"}}}});
    info.columns.push_back(columns_of({"lag_ns", "", Kind::gauge, Unit::nanoseconds, {}}).front());
    info.interval = std::chrono::milliseconds(1);
    info.start_unix_ns = 1700000000000000000;
    info.start_monotonic_ns = 5000;
    info.prometheus_prefix = "kymo_";
    return info;
  }
  static ProfilerStats stats() {
    ProfilerStats stats;
    stats.rows_captured = 2;
    stats.timing_error_ns = 70;
    stats.sample_window_ns = 40;
    stats.duration_ns = 2'000'000;
    return stats;
  }
  static void record(Sink& sink) {
    ASSERT_TRUE(sink.open(info()));
    const std::vector<std::uint64_t> words = {1000020, 1, 0, 18446744073709551615U,
                                              2000010, 2, 1, 7};
    ASSERT_TRUE(sink.write({words.data(), 2, 4}));
    ASSERT_TRUE(sink.close(stats()));
    EXPECT_GT(sink.bytes_written(), 0U);
  }
};

constexpr const char* kGolden =
    "META\tcalls\t{\"name\":\"calls\",\"prometheusName\":\"kymo_calls_total\","
    "\"description\":\"Calls\",\"cumulative\":true,"
    "\"fields\":[{\"fieldName\":\"result\",\"allowedValues\":[\"ok\",\"error\"]}]}\n"
    "META\tlag_ns\t{\"name\":\"lag_ns\",\"prometheusName\":\"kymo_lag_seconds\","
    "\"units\":\"UNITS_NANOSECONDS\"}\n"
    "START_TIME\t1700000000000000000\n"
    "Time (ns)\tcalls[ok]\tcalls[error]\tlag_ns\n"
    "1000020\t1\t0\t18446744073709551615\n"
    "2000010\t2\t1\t7\n"
    "STATS\t{\"collection_rate\":1000000,\"collection_rate_nanos\":1000000,"
    "\"cheap_start_nanos\":5000,\"cheap_last_collection_nanos\":2005000,\"total_snapshots\":2,"
    "\"total_sleep_timing_error\":70,\"total_sleep_timing_error_nanos\":70,"
    "\"total_collection_timing_error\":40,\"total_collection_timing_error_nanos\":40,"
    "\"num_backoff_sleeps\":0,\"total_backoff_sleep\":0,\"total_backoff_sleep_nanos\":0}\n";

TEST(Adler32, IsTheOneOfTheStandard) {
  EXPECT_EQ(adler32(""), 1U);
  EXPECT_EQ(adler32("Wikipedia"), 0x11E60398U);
  EXPECT_EQ(adler32(std::string(1'000'000, '\xff')), 0x3843E1BEU);
}

TEST_F(AnnotatedSinkTest, WritesThePlainFormatToTheByte) {
  const auto sink = make_annotated_sink(in_folder("run"), AnnotatedFormat::plain);
  record(*sink);
  EXPECT_EQ(content(in_folder("run")), kGolden);
}

// Each line of the plain file with a prefix and a checksum, and a blank line before and after each
// piece.
TEST_F(AnnotatedSinkTest, WritesTheLossyFormatToTheByte) {
  const int fd = ::open(in_folder("log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  ASSERT_GE(fd, 0);
  const auto sink = make_annotated_sink(fd, AnnotatedFormat::lossy);
  record(*sink);
  ASSERT_EQ(::write(fd, "still open\n", 11), 11);
  ::close(fd);
  const std::vector<std::string> log = lines(in_folder("log"));
  ASSERT_EQ(log.size(), 16U);
  for (const std::size_t blank : {0U, 5U, 6U, 9U, 10U, 12U, 13U}) {
    EXPECT_EQ(log[blank], "") << blank;
  }
  EXPECT_EQ(log[3], "GVISOR_METRICS\tSTART_TIME\t1700000000000000000\t0x748806be");
  EXPECT_EQ(log[4],
            "GVISOR_METRICS\tTime (ns)\tcalls[ok]\tcalls[error]\tlag_ns\tChecksum\t0x9968113f");
  EXPECT_EQ(log[8], "GVISOR_METRICS\t2000010\t2\t1\t7\t0xf7f0209");
  EXPECT_EQ(log[14], "GVISOR_METRICS\tADLER32\t0x3fca1097");
  EXPECT_EQ(log[15], "still open");
}

TEST_F(AnnotatedSinkTest, RowsThatDoNotFitLeaveNoTrace) {
  const auto sink = make_annotated_sink(in_folder("run"), AnnotatedFormat::lossy);
  ASSERT_TRUE(sink->open(info()));
  const std::string before = content(in_folder("run"));
  const std::vector<std::uint64_t> row = {10, 1, 2, 3};
  {
    const FileSizeLimit limit(before.size() + 7);
    EXPECT_EQ(sink->write({row.data(), 1, 4}).error().errno_value, EFBIG);
  }
  EXPECT_EQ(content(in_folder("run")), before);
  EXPECT_TRUE(sink->write({row.data(), 1, 4}));
}

TEST_F(AnnotatedSinkTest, RefusesAFileThatExists) {
  std::ofstream(in_folder("run")) << "another's";
  const auto sink = make_annotated_sink(in_folder("run"), AnnotatedFormat::plain);
  EXPECT_EQ(sink->open(info()).error().code, Code::already_exists);
}

}  // namespace
}  // namespace kymo
