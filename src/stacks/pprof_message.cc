#include "stacks/pprof_message.h"

#include <zlib.h>

#include "stacks/output.h"

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

void PprofMessage::add(unsigned field, std::uint64_t number) {
  if (number == 0) return;  // the default
  add_number(field << 3U);
  add_number(number);
}

void PprofMessage::add(unsigned field, std::string_view bytes) {
  add_number(field << 3U | 2U);
  add_number(bytes.size());
  bytes_ += bytes;
}

void PprofMessage::add_packed(unsigned field, const std::vector<std::uint64_t>& numbers) {
  PprofMessage packed;
  for (const std::uint64_t number : numbers) packed.add_number(number);
  add(field, packed);
}

void PprofMessage::add_number(std::uint64_t number) {
  for (; number >= 0x80; number >>= 7U) bytes_ += static_cast<char>(number | 0x80U);
  bytes_ += static_cast<char>(number);
}

std::uint64_t PprofFile::text(const std::string& text) {
  const auto [found, added] = texts_.try_emplace(text, texts_.size());
  if (added) ordered_texts_.push_back(&found->first);
  return found->second;
}

PprofMessage PprofFile::type(const std::string& name, const std::string& unit) {
  PprofMessage type;
  type.add(1, text(name));
  type.add(2, text(unit));
  return type;
}

PprofMessage PprofFile::label(const std::string& key, const std::string& value) {
  PprofMessage label;
  label.add(1, text(key));
  label.add(2, text(value));
  return label;
}

// The addresses of locations are those that the linker gave, so that a mapping begins at 0.
void PprofFile::add_mapping(std::uint64_t id, const std::string& path,
                            const std::string& build_id) {
  PprofMessage mapping;
  mapping.add(1, id);
  mapping.add(3, ~std::uint64_t{0});  // its end
  mapping.add(5, text(path));
  mapping.add(6, text(build_id));
  mapping.add(7, 1);  // it has functions, so that pprof does not look for them
  add(field::kMapping, mapping);
}

void PprofFile::add_function(std::uint64_t id, const std::string& name, const std::string& file) {
  PprofMessage function;
  function.add(1, id);
  function.add(2, text(name));
  function.add(3, text(name));
  function.add(4, text(file));
  add(field::kFunction, function);
}

std::string PprofFile::finish(const PprofAbout& about) {
  const QuantityFacts& facts = facts_of(about.quantity);
  add(field::kSampleType, type(facts.pprof_number, "count"));
  add(field::kSampleType, type(facts.pprof_value, facts.pprof_unit));
  message_.add(field::kTimeNanos, static_cast<std::uint64_t>(about.begin_unix_ns));
  message_.add(field::kDurationNanos, about.duration_ns);
  add(field::kPeriodType, type(facts.pprof_value, facts.pprof_unit));
  message_.add(field::kPeriod, about.period_ns != 0 ? about.period_ns : 1);
  if (about.lost != 0)
    message_.add(field::kComment, text(kLostComment + std::to_string(about.lost)));
  for (const std::string& phase : about.phases) {
    message_.add(field::kComment, text(kPhaseComment + phase));
  }
  for (const std::string* one : ordered_texts_) message_.add(field::kStringTable, *one);
  return gzip(message_.bytes());
}

}  // namespace kymo::stacks
