#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "stacks/quantity.h"

namespace kymo::stacks {

// A message of protobuf, as bytes.
class PprofMessage {
 public:
  void add(unsigned field, std::uint64_t number);
  void add(unsigned field, std::string_view bytes);
  void add(unsigned field, const PprofMessage& message) {
    add(field, std::string_view{message.bytes_});
  }
  // Numbers of a repeated field.
  void add_packed(unsigned field, const std::vector<std::uint64_t>& numbers);
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  void add_number(std::uint64_t number);

  std::string bytes_;
};

// The numbers of the fields in profile.proto of pprof.
namespace field {
inline constexpr unsigned kSampleType = 1;
inline constexpr unsigned kSample = 2;
inline constexpr unsigned kMapping = 3;
inline constexpr unsigned kLocation = 4;
inline constexpr unsigned kFunction = 5;
inline constexpr unsigned kStringTable = 6;
inline constexpr unsigned kTimeNanos = 9;
inline constexpr unsigned kDurationNanos = 10;
inline constexpr unsigned kPeriodType = 11;
inline constexpr unsigned kPeriod = 12;
inline constexpr unsigned kComment = 13;
}  // namespace field

// The facts of a profile apart from its samples.
struct PprofAbout {
  Quantity quantity = Quantity::cpu;
  std::uint64_t period_ns = 0;
  std::int64_t begin_unix_ns = 0;
  std::uint64_t duration_ns = 0;
  std::uint64_t lost = 0;  // samples
  std::vector<std::string> phases;
};

// A file of pprof while it is written: its tables of texts, functions, locations and mappings,
// whose ids begin at 1, and its samples.
//
// Threads: one.
class PprofFile {
 public:
  PprofFile() { text(""); }

  std::uint64_t text(const std::string& text);
  PprofMessage label(const std::string& key, const std::string& value);
  void add(unsigned field, const PprofMessage& message) { message_.add(field, message); }
  void add_mapping(std::uint64_t id, const std::string& path, const std::string& build_id);
  void add_function(std::uint64_t id, const std::string& name, const std::string& file);
  // The file, compressed by gzip. Call it once, after all else. Empty if there is no memory.
  std::string finish(const PprofAbout& about);

 private:
  PprofMessage type(const std::string& name, const std::string& unit);

  PprofMessage message_;
  std::unordered_map<std::string, std::uint64_t> texts_;
  std::vector<const std::string*> ordered_texts_;
};

}  // namespace kymo::stacks
