#include "daemon/serve/otlp.h"

#include <gtest/gtest.h>
#include <httplib.h>

#include <atomic>

#include "api/otlp/trace.pb.h"
#include "support/dead_port.h"
#include "support/temporary_directory.h"

namespace kymo::daemon {
namespace {

constexpr std::uint64_t kSpans = 3;  // the number of spans in each tree of these tests

std::unique_ptr<ScopeTree> failed_dump() {
  auto tree = std::make_unique<ScopeTree>(ScopeName("dump"));
  const EnterScope here(*tree);
  const Scope criu("criu", {.category = "criu"});
  const Scope part("part");
  return tree;
}

// An OpenTelemetry collector on a free port. It keeps the requests that it gets.
class Collector {
 public:
  explicit Collector(int status, const std::string& answer = "") {
    server_.Post("/v1/traces",
                 [=, this](const httplib::Request& asked, httplib::Response& response) {
                   const std::lock_guard lock(mutex_);
                   bodies_.push_back(asked.body);
                   types_.push_back(asked.get_header_value("Content-Type"));
                   response.status = status;
                   response.set_content(answer, "application/x-protobuf");
                 });
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
  }
  ~Collector() {
    while (!server_.is_running()) std::this_thread::yield();
    server_.stop();
    thread_.join();
  }
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;

  [[nodiscard]] OtlpEndpoint endpoint() const {
    return {{"127.0.0.1", static_cast<std::uint16_t>(port_)}, "/v1/traces"};
  }
  std::vector<std::string> bodies() {
    const std::lock_guard lock(mutex_);
    return bodies_;
  }
  std::vector<std::string> types() {
    const std::lock_guard lock(mutex_);
    return types_;
  }

 private:
  httplib::Server server_;
  std::mutex mutex_;
  std::vector<std::string> bodies_;
  std::vector<std::string> types_;
  int port_ = 0;
  std::thread thread_;
};

// The counters of an exporter.
struct Counts {
  std::atomic<std::uint64_t> sent{0};
  std::atomic<std::uint64_t> dropped{0};
  OtlpExporter::Count count() {
    return [this](std::uint64_t more_sent, std::uint64_t more_dropped) {
      sent += more_sent;
      dropped += more_dropped;
    };
  }
};

TEST(OtlpTest, Endpoints) {
  EXPECT_EQ(parse_otlp_endpoint("http://localhost")->at.host, "localhost");
  EXPECT_EQ(parse_otlp_endpoint("http://localhost")->at.port, 4318);
  EXPECT_EQ(parse_otlp_endpoint("http://localhost/")->path, "/v1/traces");
  EXPECT_EQ(parse_otlp_endpoint("http://10.0.0.1:80/a/b")->at.port, 80);
  EXPECT_EQ(parse_otlp_endpoint("http://10.0.0.1:80/a/b")->path, "/a/b");
  EXPECT_EQ(parse_otlp_endpoint("http://[fd00::1]")->at.host, "fd00::1");
  EXPECT_EQ(parse_otlp_endpoint("http://[::1]")->at.port, 4318);
  EXPECT_EQ(parse_otlp_endpoint("http://[::1]:99")->at.port, 99);
  for (const char* bad :
       {"", "localhost:4318", "https://localhost", "http://", "http:///a", "http://:80",
        "http://h:", "http://h:x", "http://h:0", "http://h:70000", "http://h:1/a b", "http://h/a?b",
        "http://u:p@h", "http://::1", "http://h/\n"}) {
    const Result<OtlpEndpoint> parsed = parse_otlp_endpoint(bad);
    ASSERT_FALSE(parsed.ok()) << bad;
    EXPECT_EQ(parsed.error().message,
              "--otlp-endpoint " + std::string(bad) +
                  ": wanted http://HOST[:PORT][/PATH], such as http://127.0.0.1:4318");
  }
}

TEST(OtlpTest, ATreeIsATrace) {
  std::vector<ScopeRecord> scopes(3);
  scopes[0] = {ScopeRecord::kNoParent, "dump", "", "no", 100, 5'000};
  scopes[1] = {0, "criu", "criu", "no \xff", 200, 4'000, 4'096};
  scopes[2] = {1, "aside", "", "", 300, 10};
  scopes[2].parallel = true;
  otlp::ExportTraceServiceRequest request;
  ASSERT_TRUE(request.ParseFromString(otlp_request(scopes, 1'000'000)));
  ASSERT_EQ(request.resource_spans_size(), 1);
  EXPECT_EQ(request.resource_spans(0).resource().attributes(0).value().string_value(), "kymod");
  const otlp::ScopeSpans& spans = request.resource_spans(0).scope_spans(0);
  ASSERT_EQ(spans.spans_size(), 3);
  const otlp::Span& root = spans.spans(0);
  const otlp::Span& criu = spans.spans(1);
  EXPECT_EQ(root.trace_id().size(), 16U);
  EXPECT_EQ(criu.trace_id(), root.trace_id());
  EXPECT_EQ(root.span_id().size(), 8U);
  EXPECT_EQ(root.parent_span_id(), "");
  EXPECT_EQ(criu.parent_span_id(), root.span_id());
  EXPECT_EQ(spans.spans(2).parent_span_id(), criu.span_id());
  EXPECT_NE(criu.span_id(), root.span_id());
  EXPECT_EQ(root.kind(), otlp::Span::SERVER);
  EXPECT_EQ(criu.start_time_unix_nano(), 1'000'200U);
  EXPECT_EQ(criu.end_time_unix_nano(), 1'004'200U);
  EXPECT_EQ(criu.status().code(), otlp::Status::ERROR);
  EXPECT_EQ(criu.status().message(), "no \xef\xbf\xbd") << "bytes that are no UTF-8 become U+FFFD";
  EXPECT_EQ(criu.attributes(1).key(), "kymo.bytes");
  EXPECT_EQ(criu.attributes(1).value().int_value(), 4'096);
  EXPECT_EQ(spans.spans(2).attributes(0).key(), "kymo.parallel");
  EXPECT_FALSE(spans.spans(2).has_status());
}

// The bytes are parsed by hand: a test that used the same generated code could not find a wrong
// field number.
TEST(OtlpTest, FieldsHaveOtlpsNumbers) {
  otlp::Span span;
  span.set_trace_id("T");
  span.set_span_id("S");
  span.set_parent_span_id("P");
  span.set_name("N");
  span.set_kind(otlp::Span::SERVER);
  span.set_start_time_unix_nano(1);
  span.set_end_time_unix_nano(2);
  span.mutable_status()->set_message("M");
  span.mutable_status()->set_code(otlp::Status::ERROR);
  const std::string wire = span.SerializeAsString();
  const std::string expected(
      "\x0a\x01T"
      "\x12\x01S"
      "\x22\x01P"
      "\x2a\x01N"
      "\x30\x02"
      "\x39\x01\0\0\0\0\0\0\0"
      "\x41\x02\0\0\0\0\0\0\0"
      "\x7a\x05\x12\x01M\x18\x02",
      3 + 3 + 3 + 3 + 2 + 9 + 9 + 7);
  EXPECT_EQ(wire, expected);
}

TEST(OtlpTest, TreesArriveAtTheCollector) {
  Collector collector(200);
  Counts counts;
  {
    OtlpExporter exporter(collector.endpoint(), counts.count());
    exporter.offer(*failed_dump());
    exporter.offer(*failed_dump());
  }  // the end of the exporter sends the spans that wait
  ASSERT_EQ(collector.bodies().size(), 2U);
  EXPECT_EQ(collector.types().front(), "application/x-protobuf");
  otlp::ExportTraceServiceRequest first;
  otlp::ExportTraceServiceRequest second;
  ASSERT_TRUE(first.ParseFromString(collector.bodies().at(0)));
  ASSERT_TRUE(second.ParseFromString(collector.bodies().at(1)));
  const auto& span = first.resource_spans(0).scope_spans(0).spans(0);
  EXPECT_NE(span.trace_id(), second.resource_spans(0).scope_spans(0).spans(0).trace_id());
  EXPECT_EQ(counts.sent.load(), 2 * kSpans);
  EXPECT_EQ(counts.dropped.load(), 0U);
}

TEST(OtlpTest, WhatTheCollectorRefusesIsCounted) {
  Collector collector(503);
  Counts counts;
  OtlpExporter exporter(collector.endpoint(), counts.count());
  exporter.offer(*failed_dump());
  EXPECT_TRUE(test::eventually([&] { return counts.dropped.load() == kSpans; }));
  EXPECT_EQ(counts.sent.load(), 0U);
}

// The collector's answer, built by hand: partial_success{rejected_spans: N}.
TEST(OtlpTest, WhatTheCollectorTakesInPartIsCountedSo) {
  for (const std::uint64_t rejected : {1U, 3U, 100U}) {
    Collector collector(200, std::string("\x0a\x02\x08") + static_cast<char>(rejected));
    Counts counts;
    OtlpExporter exporter(collector.endpoint(), counts.count());
    exporter.offer(*failed_dump());
    EXPECT_TRUE(test::eventually([&] { return counts.dropped + counts.sent == kSpans; }));
    EXPECT_EQ(counts.dropped.load(), std::min(rejected, kSpans));
  }
}

TEST(OtlpTest, AnAnswerWithoutEndIsNotRead) {
  Collector collector(200, std::string(1 << 20U, 'x'));
  Counts counts;
  OtlpExporter exporter(collector.endpoint(), counts.count());
  exporter.offer(*failed_dump());
  EXPECT_TRUE(test::eventually([&] { return counts.dropped.load() == kSpans; }));
}

TEST(OtlpTest, ScopesThatTheTreeHadNoRoomForAreDroppedSpans) {
  Collector collector(200);
  Counts counts;
  OtlpExporter exporter(collector.endpoint(), counts.count());
  ScopeTree tree("dump", 2);
  {
    const EnterScope here(tree);
    for (int i = 0; i < 5; ++i) const Scope part("part");
  }
  tree.end();
  const std::uint64_t recorded = tree.records().size();
  ASSERT_EQ(recorded + tree.dropped(), 6U);
  exporter.offer(tree);
  EXPECT_TRUE(test::eventually([&] { return counts.sent.load() == recorded; }));
  EXPECT_EQ(counts.dropped.load(), 6 - recorded);
}

// offer() must never wait, neither if nobody listens nor if the collector does not answer. The
// queue is bounded. At the end, each span is counted as sent or dropped. The watchdog would end
// this test if it waited for each answer.
TEST(OtlpTest, ADeadEndpointDelaysNothingAndLosesNoCount) {
  for (const bool listening : {false, true}) {
    const test::DeadPort port(listening);
    Counts counts;
    std::uint64_t offered = 0;
    {
      OtlpExporter exporter({{"127.0.0.1", port.number()}, "/v1/traces"}, counts.count());
      const auto tree = failed_dump();
      while (offered < 2 * OtlpExporter::kMaxWaitingSpans) {
        exporter.offer(*tree);
        offered += kSpans;
      }
      EXPECT_GT(counts.dropped.load(), 0U) << "spans that do not fit into the queue are dropped";
    }
    EXPECT_EQ(counts.dropped.load(), offered) << listening;
    EXPECT_EQ(counts.sent.load(), 0U);
  }
}

}  // namespace
}  // namespace kymo::daemon
