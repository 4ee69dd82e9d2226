#include "profiler/stacks/pprof_file.h"

#include <zlib.h>

#include "profiler/stacks/output.h"

namespace kymo::stacks {
namespace {

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

std::int64_t PprofFile::text(const std::string& text) {
  const auto [found, added] =
      texts_.try_emplace(text, static_cast<std::int64_t>(profile_.string_table_size()));
  if (added) profile_.add_string_table(text);
  return found->second;
}

void PprofFile::fill(wire::ValueType& type, const std::string& name, const std::string& unit) {
  type.set_type(text(name));
  type.set_unit(text(unit));
}

wire::Sample& PprofFile::add_sample(const std::vector<std::uint64_t>& locations,
                                    const Weight& weight) {
  wire::Sample& sample = *profile_.add_sample();
  sample.mutable_location_id()->Assign(locations.begin(), locations.end());
  sample.add_value(static_cast<std::int64_t>(weight.samples));
  sample.add_value(static_cast<std::int64_t>(weight.value));
  return sample;
}

void PprofFile::add_label(wire::Sample& sample, const std::string& key, const std::string& value) {
  wire::Label& label = *sample.add_label();
  label.set_key(text(key));
  label.set_str(text(value));
}

void PprofFile::add_label(wire::Sample& sample, const std::string& key, std::int64_t number) {
  wire::Label& label = *sample.add_label();
  label.set_key(text(key));
  label.set_num(number);
}

// The addresses of locations are those that the linker gave, so that a mapping begins at 0.
void PprofFile::add_mapping(std::uint64_t id, const std::string& path,
                            const std::string& build_id) {
  wire::Mapping& mapping = *profile_.add_mapping();
  mapping.set_id(id);
  mapping.set_memory_limit(~std::uint64_t{0});
  mapping.set_filename(text(path));
  mapping.set_build_id(text(build_id));
  mapping.set_has_functions(true);  // so that pprof does not look for them
}

wire::Location& PprofFile::add_location(std::uint64_t id, std::uint64_t mapping,
                                        std::uint64_t address) {
  wire::Location& location = *profile_.add_location();
  location.set_id(id);
  location.set_mapping_id(mapping);
  location.set_address(address);
  return location;
}

void PprofFile::add_line(wire::Location& location, std::uint64_t function, std::int64_t line) {
  wire::Line& added = *location.add_line();
  added.set_function_id(function);
  added.set_line(line);
}

void PprofFile::add_function(std::uint64_t id, const std::string& name, const std::string& file) {
  wire::Function& function = *profile_.add_function();
  function.set_id(id);
  function.set_name(text(name));
  function.set_system_name(text(name));
  function.set_filename(text(file));
}

std::string PprofFile::finish(const PprofAbout& about) {
  const QuantityFacts& facts = facts_of(about.quantity);
  fill(*profile_.add_sample_type(), facts.pprof_number, "count");
  fill(*profile_.add_sample_type(), facts.pprof_value, facts.pprof_unit);
  profile_.set_time_nanos(about.begin_unix_ns);
  profile_.set_duration_nanos(static_cast<std::int64_t>(about.duration_ns));
  fill(*profile_.mutable_period_type(), facts.pprof_value, facts.pprof_unit);
  profile_.set_period(about.period_ns != 0 ? static_cast<std::int64_t>(about.period_ns) : 1);
  if (about.lost != 0) profile_.add_comment(text(kLostComment + std::to_string(about.lost)));
  for (const std::string& phase : about.phases) profile_.add_comment(text(kPhaseComment + phase));
  return gzip(profile_.SerializeAsString());
}

}  // namespace kymo::stacks
