// Compares the spans of real requests, as OpenTelemetry's own decoder reads them, with the timing trees.

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <sstream>

#include "base/clock.h"
#include "programs.h"
#include "support/dead_port.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

// Why the decoder is not available, or empty if it is. Fails the test if it cannot be installed although
// npm is there and reaches a registry.
std::string why_no_decoder() {
  const Outcome installed = run({NPM_INSTALL, OTLP_SOURCE, OTLP_FOLDER});
  if (installed.exit_code == 77) return installed.err;
  EXPECT_EQ(installed.exit_code, 0) << installed.err;
  return "";
}

// A collector in node. It runs as long as this object exists.
class Collector {
 public:
  Collector() {
    const Outcome started =
        run({"sh", "-c",
             "node " OTLP_FOLDER "/collector.js " + file() + " >" + log() + " 2>&1 & echo $!"});
    pid_ = std::stoi(started.out);
    EXPECT_TRUE(eventually([&] { return !lines().empty(); })) << read_file(log());
  }
  ~Collector() { kill(pid_, SIGKILL); }
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;

  // The value for --otlp-endpoint.
  [[nodiscard]] std::string url() const {
    return "http://127.0.0.1:" + std::to_string(lines().at(0)["port"].get<int>());
  }
  // Waits until the collector has `count` requests, and returns them.
  [[nodiscard]] std::vector<json> requests(std::size_t count) const {
    EXPECT_TRUE(eventually([&] { return lines().size() > count; })) << read_file(log());
    std::vector<json> all = lines();
    all.erase(all.begin());
    EXPECT_EQ(all.size(), count);
    return all;
  }

 private:
  [[nodiscard]] std::string file() const { return folder_.path() + "/requests"; }
  [[nodiscard]] std::string log() const { return folder_.path() + "/log"; }
  [[nodiscard]] std::vector<json> lines() const {
    std::istringstream text(read_file(file()));
    std::vector<json> out;
    for (std::string line; std::getline(text, line);) {
      if (json object = json::parse(line, nullptr, false); !object.is_discarded()) {
        out.push_back(std::move(object));
      }
    }
    return out;
  }

  TemporaryDirectory folder_;
  pid_t pid_ = 0;
};

std::uint64_t number(const json& text) {
  return std::stoull(text.get<std::string>());
}

// Flattens a tree of `kymo --json` in the order of its spans: each scope with the index of its parent.
void flatten(const json& scope, std::size_t parent, std::vector<std::pair<json, std::size_t>>& to) {
  const std::size_t own = to.size();
  to.emplace_back(scope, parent);
  for (const json& part : scope.value("components", json::array())) flatten(part, own, to);
}

// The number of scopes in the tree, with those that did not fit into the trailer.
std::size_t scopes_of(const json& timing) {
  std::vector<std::pair<json, std::size_t>> scopes;
  flatten(timing, 0, scopes);
  return scopes.size() + timing.value("scopes_left_out", std::size_t{0});
}

// Compares the spans with the timing tree that the caller got: names, parents, durations and errors must
// be equal, and their times must be between two times of the wall clock.
void expect_the_tree(const json& spans, const json& timing, std::uint64_t earliest_ns,
                     std::uint64_t latest_ns) {
  std::vector<std::pair<json, std::size_t>> scopes;
  flatten(timing, 0, scopes);
  ASSERT_EQ(spans.size(), scopes_of(timing)) << spans.dump(1);
  std::map<std::string, const json*> by_id;
  for (const json& span : spans) {
    EXPECT_EQ(span["traceId"], spans[0]["traceId"]);
    EXPECT_TRUE(by_id.emplace(span["spanId"].get<std::string>(), &span).second);
  }
  const std::uint64_t offset =
      number(spans[0]["startTimeUnixNano"]) - timing["start_ns"].get<std::uint64_t>();
  EXPECT_GE(number(spans[0]["startTimeUnixNano"]), earliest_ns);
  EXPECT_LE(number(spans[0]["endTimeUnixNano"]), latest_ns);
  for (const auto& [scope, parent] : scopes) {
    const auto found = std::find_if(spans.begin(), spans.end(), [&, &s = scope](const json& span) {
      return span["name"] == s["name"] &&
             number(span["startTimeUnixNano"]) == s["start_ns"].get<std::uint64_t>() + offset;
    });
    ASSERT_NE(found, spans.end()) << scope["name"] << " in " << spans.dump(1);
    const json& span = *found;
    EXPECT_EQ(number(span["endTimeUnixNano"]) - number(span["startTimeUnixNano"]),
              scope["duration_ns"].get<std::uint64_t>())
        << scope["name"];
    if (&scope != &scopes.front().first) {
      EXPECT_EQ((*by_id.at(span["parentSpanId"]))["name"], scopes[parent].first["name"]);
    }
    const json status = span.value("status", json::object());
    if (scope.contains("error")) {
      EXPECT_EQ(status["code"], "STATUS_CODE_ERROR") << scope["name"];
      EXPECT_EQ(status["message"], scope["error"]);
    } else {
      EXPECT_FALSE(status.contains("message")) << scope["name"];
    }
  }
}

const json& spans_of(const json& request) {
  EXPECT_EQ(request["path"], "/v1/traces");
  EXPECT_EQ(request["type"], "application/x-protobuf");
  EXPECT_EQ(request["resource_spans"].size(), 1U);
  const json& resource = request["resource_spans"][0];
  EXPECT_EQ(resource["resource"]["attributes"][0]["key"], "service.name");
  EXPECT_EQ(resource["resource"]["attributes"][0]["value"]["stringValue"], "kymod");
  return resource["scopeSpans"][0]["spans"];
}

// The value of kymod's counter with this name.
std::uint64_t counted(const Kymod& kymod, const std::string& name) {
  for (const json& metric : kymod.kymo_json({"metrics"})) {
    if (metric["name"] == name) return metric["values"][0]["value"].get<std::uint64_t>();
  }
  ADD_FAILURE() << "no metric " << name;
  return 0;
}

std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(unix_ns());
}

TEST(OtlpTest, OpenTelemetrysDecoderReadsTheSpansOfADumpAndOfAFailure) {
  KYMO_NEEDS_CRIU();
  if (const std::string why = why_no_decoder(); !why.empty()) GTEST_SKIP() << why;
  const Collector collector;
  Kymod kymod({"--otlp-endpoint", collector.url()});
  kymod.start();
  static_cast<void>(kymod.churn(8, "work"));
  const std::uint64_t before = now_ns();
  const json dump = kymod.kymo_json({"dump", "process", "work"});
  const std::uint64_t after = now_ns();
  const std::string path = kymod.path("failed.json");
  EXPECT_EQ(kymod.kymo({"dump", "process", "4194303", "--profiling-path", path}).exit_code, 1);
  const std::vector<json> requests = collector.requests(3);

  EXPECT_EQ(spans_of(requests[0])[0]["name"], "run");
  const json& dumped = spans_of(requests[1]);
  EXPECT_EQ(dumped[0]["kind"], "SPAN_KIND_SERVER");
  EXPECT_FALSE(dumped[0].contains("parentSpanId")) << dumped[0].dump(1);
  EXPECT_FALSE(dumped[0].contains("status")) << dumped[0].dump(1);
  expect_the_tree(dumped, dump["timing"], before, after);

  const json failed = json::parse(read_file(path));
  const json& failure = spans_of(requests[2]);
  EXPECT_EQ(failure[0]["status"]["code"], "STATUS_CODE_ERROR");
  EXPECT_NE(failure[0]["traceId"], dumped[0]["traceId"]);
  expect_the_tree(failure, failed, after, now_ns());

  std::uint64_t spans = 0;
  for (const json& request : requests) spans += spans_of(request).size();
  EXPECT_TRUE(eventually([&] { return counted(kymod, "otlp_spans_sent") == spans; }));
  EXPECT_EQ(counted(kymod, "otlp_spans_dropped"), 0U);
}

// Dumps must take no longer than without a collector, and lost spans must be counted. If requests waited
// for a collector that hangs, each would take two seconds longer. A single one that is faster shows that
// requests do not wait, also on a busy machine.
TEST(OtlpTest, ACollectorThatHangsOrIsAwayDelaysNoRequest) {
  KYMO_NEEDS_CRIU();
  for (const bool hangs : {true, false}) {
    SCOPED_TRACE(hangs ? "hangs" : "is away");
    const DeadPort port(hangs);
    Kymod kymod({"--otlp-endpoint", "http://127.0.0.1:" + std::to_string(port.number())});
    kymod.start();
    static_cast<void>(kymod.churn(8, "work"));
    std::uint64_t spans = 0;  // the spans of `run`, which is the only tree so far
    EXPECT_TRUE(eventually([&] { return (spans = counted(kymod, "otlp_spans_dropped")) != 0; }));
    EXPECT_TRUE(eventually([&] {
      const auto began = Clock::now();
      const json dump = kymod.kymo_json({"dump", "process", "work", "--leave-running"});
      const std::chrono::nanoseconds took = Clock::now() - began;
      const json& timing = dump["timing"];
      spans += scopes_of(timing);
      return took - std::chrono::nanoseconds(timing["duration_ns"].get<std::uint64_t>()) <
             std::chrono::seconds(2);
    }));
    EXPECT_TRUE(eventually([&] { return counted(kymod, "otlp_spans_dropped") == spans; },
                           std::chrono::seconds(30)))
        << counted(kymod, "otlp_spans_dropped") << " of " << spans;
    EXPECT_EQ(counted(kymod, "otlp_spans_sent"), 0U);
    const std::string log = kymod.log();
    const std::size_t said = log.find("kymod drops them until that works");
    ASSERT_NE(said, std::string::npos) << log;
    EXPECT_EQ(log.find("kymod drops them until that works", said + 1), std::string::npos) << log;
  }
}

TEST(OtlpTest, ByDefaultNothingIsSentAndTheEnvironmentNamesTheEndpoint) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  EXPECT_TRUE(kymod.logs("otlp-endpoint = (none)"));
  static_cast<void>(kymod.churn(8, "work"));
  EXPECT_EQ(counted(kymod, "otlp_spans_sent") + counted(kymod, "otlp_spans_dropped"), 0U);
  ASSERT_EQ(setenv("KYMO_OTLP_ENDPOINT", "ftp://nowhere", 1), 0);
  const Outcome refused = run({KYMOD_PROGRAM, "--criu", criu_path()});
  ASSERT_EQ(unsetenv("KYMO_OTLP_ENDPOINT"), 0);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("--otlp-endpoint ftp://nowhere: wanted http://HOST"),
            std::string::npos)
      << refused.err;
}

}  // namespace
}  // namespace kymo::test
