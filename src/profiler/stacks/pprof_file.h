#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "profiler/stacks/pprof.pb.h"
#include "profiler/stacks/quantity.h"

namespace kymo::stacks {

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

  // A new sample, without labels. `locations`: innermost first.
  wire::Sample& add_sample(const std::vector<std::uint64_t>& locations, const Weight& weight);
  void add_label(wire::Sample& sample, const std::string& key, const std::string& value);
  void add_label(wire::Sample& sample, const std::string& key, std::int64_t number);
  void add_mapping(std::uint64_t id, const std::string& path, const std::string& build_id);
  // A new location, without lines.
  wire::Location& add_location(std::uint64_t id, std::uint64_t mapping, std::uint64_t address);
  static void add_line(wire::Location& location, std::uint64_t function, std::int64_t line);
  void add_function(std::uint64_t id, const std::string& name, const std::string& file);
  // The file, compressed by gzip. Call it once, after all else. Empty if there is no memory.
  std::string finish(const PprofAbout& about);

 private:
  std::int64_t text(const std::string& text);
  void fill(wire::ValueType& type, const std::string& name, const std::string& unit);

  wire::Profile profile_;
  std::unordered_map<std::string, std::int64_t> texts_;
};

}  // namespace kymo::stacks
