#include "daemon/serve/otlp.h"

#include <httplib.h>
#include <spdlog/spdlog.h>

#include <nlohmann/json.hpp>
#include <random>

#include "api/otlp/trace.pb.h"
#include "base/clock.h"
#include "base/json_text.h"
#include "kymo/version.h"

namespace kymo::daemon {
namespace {

constexpr auto kCollectorPatience =
    std::chrono::seconds(2);  // for connecting, for writing, for the answer
constexpr std::size_t kMaxAnswerBytes = 65536;

std::uint64_t random_number() {
  std::random_device random;
  return std::uint64_t{random()} << 32U | random();
}

// An identifier of eight bytes: those of the number, the highest first.
std::string eight_bytes(std::uint64_t number) {
  std::string bytes(8, '\0');
  for (std::size_t at = bytes.size(); at-- != 0; number >>= 8U) {
    bytes[at] = static_cast<char>(number & 0xFFU);
  }
  return bytes;
}

void set(otlp::KeyValue* attribute, const char* key, const std::string& value) {
  attribute->set_key(key);
  attribute->mutable_value()->set_string_value(valid_utf8(value));
}

void set_number(otlp::KeyValue* attribute, const char* key, std::uint64_t value) {
  attribute->set_key(key);
  attribute->mutable_value()->set_int_value(static_cast<std::int64_t>(value));
}

void set_true(otlp::KeyValue* attribute, const char* key) {
  attribute->set_key(key);
  attribute->mutable_value()->set_bool_value(true);
}

void fill(otlp::Span& span, const ScopeRecord& scope, std::int64_t offset_ns) {
  const std::uint64_t start = scope.start_ns + static_cast<std::uint64_t>(offset_ns);
  span.set_name(valid_utf8(scope.name));
  span.set_start_time_unix_nano(start);
  span.set_end_time_unix_nano(start + scope.duration_ns);
  if (scope.thread != 0) set_number(span.add_attributes(), "thread.id", scope.thread);
  if (!scope.category.empty()) set(span.add_attributes(), "kymo.category", scope.category);
  if (scope.bytes != 0) set_number(span.add_attributes(), "kymo.bytes", scope.bytes);
  if (scope.parallel) set_true(span.add_attributes(), "kymo.parallel");
  if (scope.redundant) set_true(span.add_attributes(), "kymo.redundant");
  if (scope.bytes_redundant) set_true(span.add_attributes(), "kymo.bytes_redundant");
  if (scope.unfinished) set_true(span.add_attributes(), "kymo.unfinished");
  if (!scope.error.empty()) {
    span.mutable_status()->set_code(otlp::Status::ERROR);
    span.mutable_status()->set_message(valid_utf8(scope.error));
  }
}

std::string text_of(httplib::Error error) {
  switch (error) {
    case httplib::Error::Connection:
      return "no connection";
    case httplib::Error::Read:
      return "no answer";
    case httplib::Error::Canceled:
      return "its answer is too long or takes too long";
    default:
      return "httplib says " + httplib::to_string(error);
  }
}

}  // namespace

std::string otlp_request(const std::vector<ScopeRecord>& scopes,
                         std::int64_t unix_less_monotonic_ns) {
  otlp::ExportTraceServiceRequest request;
  otlp::ResourceSpans* resource = request.add_resource_spans();
  set(resource->mutable_resource()->add_attributes(), "service.name", "kymod");
  set(resource->mutable_resource()->add_attributes(), "service.version", KYMO_VERSION);
  otlp::ScopeSpans* spans = resource->add_scope_spans();
  spans->mutable_scope()->set_name("kymo");
  spans->mutable_scope()->set_version(KYMO_VERSION);
  const std::string trace = eight_bytes(random_number()) + eight_bytes(random_number());
  const std::uint64_t first = random_number() / 2 + 1;  // so that no id is 0, which is invalid
  for (std::size_t i = 0; i < scopes.size(); ++i) {
    otlp::Span* span = spans->add_spans();
    span->set_trace_id(trace);
    span->set_span_id(eight_bytes(first + i));
    if (i != 0) span->set_parent_span_id(eight_bytes(first + scopes[i].parent));
    span->set_kind(i == 0 ? otlp::Span::SERVER : otlp::Span::INTERNAL);
    fill(*span, scopes[i], unix_less_monotonic_ns);
  }
  return request.SerializeAsString();
}

OtlpExporter::OtlpExporter(OtlpEndpoint endpoint, Count count)
    : name_(endpoint.at.host + ", port " + std::to_string(endpoint.at.port)),
      path_(std::move(endpoint.path)),
      count_(std::move(count)),
      client_(std::make_unique<httplib::Client>(endpoint.at.host, endpoint.at.port)) {
  client_->set_connection_timeout(kCollectorPatience);
  client_->set_write_timeout(kCollectorPatience);
  client_->set_read_timeout(kCollectorPatience);
  thread_ = std::thread([this] { send_all(); });
}

OtlpExporter::~OtlpExporter() {
  {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kFlush, [this] { return failing_ || (waiting_.empty() && !sending_); });
    stopping_ = true;
  }
  changed_.notify_all();
  client_->stop();  // ends a wait for an answer
  thread_.join();
}

void OtlpExporter::offer(const ScopeTree& tree) {
  Trace trace{tree.records(), unix_ns() - static_cast<std::int64_t>(monotonic_ns())};
  std::uint64_t dropped = tree.dropped();
  {
    const std::lock_guard lock(mutex_);
    if (waiting_spans_ + trace.scopes.size() <= kMaxWaitingSpans) {
      waiting_spans_ += trace.scopes.size();
      waiting_.push_back(std::move(trace));
    } else {
      dropped += trace.scopes.size();
    }
  }
  changed_.notify_all();
  if (dropped != 0) count_(0, dropped);
}

void OtlpExporter::send_all() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    if (stopping_) break;
    const Trace trace = std::move(waiting_.front());
    waiting_.pop_front();
    waiting_spans_ -= trace.scopes.size();
    sending_ = true;
    lock.unlock();
    const Result<std::uint64_t> sent = send(trace);
    count_(sent ? *sent : 0, trace.scopes.size() - (sent ? *sent : 0));
    if (sent.ok() == failing_) say(sent);
    lock.lock();
    sending_ = false;
    failing_ = !sent.ok();
    changed_.notify_all();
  }
  if (waiting_spans_ != 0) {
    spdlog::warn("{} spans are not sent to {}: the daemon stops", waiting_spans_, name_);
    count_(0, waiting_spans_);
  }
}

Result<std::uint64_t> OtlpExporter::send(const Trace& trace) try {
  httplib::Request request;
  request.method = "POST";
  request.path = path_;
  request.body = otlp_request(trace.scopes, trace.unix_less_monotonic_ns);
  request.set_header("Content-Type", "application/x-protobuf");
  std::string body;
  const auto until = std::chrono::steady_clock::now() + 3 * kCollectorPatience;
  request.content_receiver = [&](const char* data, std::size_t size, std::uint64_t, std::uint64_t) {
    body.append(data, size);
    return body.size() <= kMaxAnswerBytes && std::chrono::steady_clock::now() < until;
  };
  const httplib::Result answer = client_->send(request);
  if (!answer) return Error{Code::unavailable, text_of(answer.error())};
  if (answer->status / 100 != 2) {
    return Error{Code::unavailable, "it answers " + std::to_string(answer->status)};
  }
  otlp::ExportTraceServiceResponse response;
  if (!response.ParseFromString(body)) return std::uint64_t{trace.scopes.size()};
  const std::int64_t rejected = response.partial_success().rejected_spans();
  const auto all = static_cast<std::int64_t>(trace.scopes.size());
  return static_cast<std::uint64_t>(all - std::clamp<std::int64_t>(rejected, 0, all));
} catch (const std::exception& error) {  // such as out of memory: the thread must not end
  return Error{Code::internal, error.what()};
}

// Called only if sending begins to fail or works again: otherwise a missing collector would fill
// the log.
void OtlpExporter::say(const Result<std::uint64_t>& sent) const {
  if (sent) {
    spdlog::info("spans are sent to {} again", name_);
  } else {
    spdlog::warn("cannot send spans to {}: {}; kymod drops them until that works", name_,
                 sent.error().message);
  }
}

}  // namespace kymo::daemon
