#include <zlib.h>

#include <map>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "stacks/output.h"

namespace kymo::stacks {
namespace {

// A message of protobuf, as bytes.
class Message {
 public:
  void add(unsigned field, std::uint64_t number) {
    if (number == 0) return;  // the default
    add_number(field << 3U);
    add_number(number);
  }
  void add(unsigned field, std::string_view bytes) {
    add_number(field << 3U | 2U);
    add_number(bytes.size());
    bytes_ += bytes;
  }
  void add(unsigned field, const Message& message) { add(field, std::string_view(message.bytes_)); }
  // Numbers of a repeated field.
  void add_packed(unsigned field, const std::vector<std::uint64_t>& numbers) {
    Message packed;
    for (const std::uint64_t number : numbers) packed.add_number(number);
    add(field, packed);
  }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  void add_number(std::uint64_t number) {
    for (; number >= 0x80; number >>= 7U) bytes_ += static_cast<char>(number | 0x80U);
    bytes_ += static_cast<char>(number);
  }
  std::string bytes_;
};

// The numbers of the fields in profile.proto of pprof.
namespace field {
enum Profile : unsigned {
  kSampleType = 1,
  kSample,
  kMapping,
  kLocation,
  kFunction,
  kStringTable,
  kTimeNanos = 9,
  kDurationNanos,
  kPeriodType,
  kPeriod,
  kComment,
  kDefaultSampleType,
};
}  // namespace field

// Builds the tables that samples refer to by their ids. Ids begin at 1.
class Writer {
 public:
  Writer(const Profile& profile, Symbols& symbols) : profile_(profile), symbols_(symbols) {
    text("");
  }

  std::string write();

 private:
  std::uint64_t text(const std::string& text);
  Message type(const std::string& name, const std::string& unit);
  Message label(const std::string& key, const std::string& value);
  std::uint64_t mapping(const Module* module);
  std::uint64_t function(const Line& line);
  std::uint64_t location(const Frame& frame);
  std::uint64_t truncated();
  void add_location(std::uint64_t id, const Frame& frame, const std::vector<Line>& lines);
  void add_sample(const Trace& trace, const Weight& weight);

  const Profile& profile_;
  Symbols& symbols_;
  Message message_;
  std::unordered_map<std::string, std::uint64_t> texts_;
  std::vector<const std::string*> ordered_texts_;
  std::map<const Module*, std::uint64_t> mappings_;
  std::map<std::tuple<std::string, std::string>, std::uint64_t> functions_;
  std::map<Frame, std::uint64_t> locations_;
  std::uint64_t next_location_ = 1;
  std::uint64_t truncated_ = 0;
};

std::uint64_t Writer::text(const std::string& text) {
  const auto [found, added] = texts_.try_emplace(text, texts_.size());
  if (added) ordered_texts_.push_back(&found->first);
  return found->second;
}

Message Writer::type(const std::string& name, const std::string& unit) {
  Message type;
  type.add(1, text(name));
  type.add(2, text(unit));
  return type;
}

Message Writer::label(const std::string& key, const std::string& value) {
  Message label;
  label.add(1, text(key));
  label.add(2, text(value));
  return label;
}

// The addresses of locations are those that the linker gave, so that a mapping begins at 0.
std::uint64_t Writer::mapping(const Module* module) {
  if (module == nullptr) return 0;
  const auto [found, added] = mappings_.try_emplace(module, mappings_.size() + 1);
  if (added) {
    Message mapping;
    mapping.add(1, found->second);
    mapping.add(3, ~std::uint64_t{0});  // its end
    mapping.add(5, text(module->path));
    mapping.add(6, text(Symbols::build_id(*module)));
    mapping.add(7, 1);  // it has functions, so that pprof does not look for them
    message_.add(field::kMapping, mapping);
  }
  return found->second;
}

std::uint64_t Writer::function(const Line& line) {
  const auto [found, added] =
      functions_.try_emplace({line.function, line.file}, functions_.size() + 1);
  if (added) {
    Message function;
    function.add(1, found->second);
    function.add(2, text(line.function));
    function.add(3, text(line.function));
    function.add(4, text(line.file));
    message_.add(field::kFunction, function);
  }
  return found->second;
}

void Writer::add_location(std::uint64_t id, const Frame& frame, const std::vector<Line>& lines) {
  Message location;
  location.add(1, id);
  location.add(2, mapping(frame.module));
  location.add(3, frame.address);
  for (const Line& one : lines) {
    Message line;
    line.add(1, function(one));
    line.add(2, one.line);
    location.add(4, line);
  }
  message_.add(field::kLocation, location);
}

std::uint64_t Writer::location(const Frame& frame) {
  const auto [found, added] = locations_.try_emplace(frame, next_location_);
  if (added) add_location(next_location_++, frame, symbols_.at(frame).lines);
  return found->second;
}

std::uint64_t Writer::truncated() {
  if (truncated_ == 0) {
    truncated_ = next_location_++;
    add_location(truncated_, {}, {{kTruncated, {}, 0}});
  }
  return truncated_;
}

void Writer::add_sample(const Trace& trace, const Weight& weight) {
  std::vector<std::uint64_t> ids;
  for (const Frame& frame : trace.frames) ids.push_back(location(frame));
  if (trace.truncated) ids.push_back(truncated());
  Message sample;
  sample.add_packed(1, ids);
  sample.add_packed(2, {weight.samples, weight.ns});
  sample.add(3, label("process", trace.process));
  sample.add(3, label("thread", trace.thread));
  for (const auto& [key, value] :
       {std::pair("container", &trace.container), {"phase", &trace.phase}, {"role", &trace.role}}) {
    if (!value->empty()) sample.add(3, label(key, *value));
  }
  Message pid;
  pid.add(1, text("pid"));
  pid.add(3, static_cast<std::uint64_t>(trace.pid));
  sample.add(3, pid);
  message_.add(field::kSample, sample);
}

std::string Writer::write() {
  const char* const what = profile_.waits ? "wait" : "cpu";
  message_.add(field::kSampleType, type(profile_.waits ? "waits" : "samples", "count"));
  message_.add(field::kSampleType, type(what, "nanoseconds"));
  for (const auto& [trace, weight] : profile_.traces) add_sample(trace, weight);
  message_.add(field::kTimeNanos, static_cast<std::uint64_t>(profile_.begin_unix_ns));
  message_.add(field::kDurationNanos, profile_.duration_ns);
  message_.add(field::kPeriodType, type(what, "nanoseconds"));
  message_.add(field::kPeriod, profile_.waits ? 1 : profile_.period_ns);
  if (profile_.counts.lost != 0) {
    message_.add(field::kComment, text(kLostComment + std::to_string(profile_.counts.lost)));
  }
  for (const std::string& phase : profile_.phases) {
    message_.add(field::kComment, text(kPhaseComment + phase));
  }
  for (const std::string* one : ordered_texts_) message_.add(field::kStringTable, *one);
  return message_.bytes();
}

std::string gzip(const std::string& bytes) {
  constexpr int kGzipWindow = MAX_WBITS + 16;
  constexpr int kMemory = 8;
  z_stream stream{};
  if (::deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow, kMemory,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
    return {};
  }
  std::string packed(::deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int result = ::deflate(&stream, Z_FINISH);
  packed.resize(result == Z_STREAM_END ? stream.total_out : 0);
  ::deflateEnd(&stream);
  return packed;
}

}  // namespace

std::string pprof(const Profile& profile, Symbols& symbols) {
  return gzip(Writer(profile, symbols).write());
}

}  // namespace kymo::stacks
