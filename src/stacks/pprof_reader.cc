#include <zlib.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "stacks/named_profile.h"
#include "stacks/output.h"

namespace kymo::stacks {
namespace {

constexpr std::size_t kMaxPprofBytes = std::size_t{512} << 20U;
constexpr std::size_t kMaxPhases = 1000;

// The fields of a message of protobuf, one after the other.
class PprofFields {
 public:
  explicit PprofFields(std::string_view bytes) : rest_(bytes) {}

  // Goes to the next field. Returns false at the end, or if the next bytes are not a field.
  bool next();
  [[nodiscard]] bool whole() const { return !broken_; }
  [[nodiscard]] std::uint64_t id() const { return id_; }
  [[nodiscard]] std::uint64_t number() const { return number_; }
  [[nodiscard]] std::string_view bytes() const { return bytes_; }
  // Appends the numbers of a repeated field, packed or not.
  void append_to(std::vector<std::uint64_t>& numbers);

 private:
  std::optional<std::uint64_t> take_number();
  bool take(std::size_t count);

  std::string_view rest_;
  std::uint64_t id_ = 0;
  bool packed_ = false;
  std::uint64_t number_ = 0;
  std::string_view bytes_;
  bool broken_ = false;
};

std::optional<std::uint64_t> PprofFields::take_number() {
  constexpr unsigned kBits = 64;
  std::uint64_t number = 0;
  for (unsigned shift = 0; shift < kBits && !rest_.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    number |= std::uint64_t{byte & 0x7FU} << shift;
    if (byte < 0x80) return number;
  }
  broken_ = true;
  return std::nullopt;
}

bool PprofFields::take(std::size_t count) {
  if (count > rest_.size()) {
    broken_ = true;
    return false;
  }
  bytes_ = rest_.substr(0, count);
  rest_.remove_prefix(count);
  return true;
}

bool PprofFields::next() {
  if (rest_.empty() || broken_) return false;
  const std::optional<std::uint64_t> tag = take_number();
  if (!tag) return false;
  id_ = *tag >> 3U;
  number_ = 0;
  bytes_ = {};
  packed_ = false;
  switch (*tag & 7U) {
    case 0: {
      const std::optional<std::uint64_t> number = take_number();
      number_ = number.value_or(0);
      return number.has_value();
    }
    case 1:
      return take(8);
    case 2: {
      packed_ = true;
      const std::optional<std::uint64_t> size = take_number();
      return size && take(*size);
    }
    case 5:
      return take(4);
    default:
      broken_ = true;
      return false;
  }
}

void PprofFields::append_to(std::vector<std::uint64_t>& numbers) {
  if (!packed_) {
    numbers.push_back(number_);
    return;
  }
  PprofFields packed(bytes_);
  while (!packed.rest_.empty()) {
    const std::optional<std::uint64_t> number = packed.take_number();
    if (!number) break;
    numbers.push_back(*number);
  }
  broken_ = broken_ || packed.broken_;
}

struct PprofLocation {
  std::uint64_t mapping = 0;
  std::vector<std::uint64_t> functions;  // innermost first
};

// The tables of a file, by their ids.
struct Tables {
  std::vector<std::string_view> texts;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> value_types;  // name and unit, as texts
  std::unordered_map<std::uint64_t, std::uint64_t> mappings;         // the file, as a text
  std::unordered_map<std::uint64_t, std::uint64_t> functions;        // the name, as a text
  std::unordered_map<std::uint64_t, PprofLocation> locations;
  std::vector<std::string_view> samples;
  std::uint64_t duration_ns = 0;
  std::uint64_t period = 0;
  std::vector<std::uint64_t> comments;  // as texts
  std::uint64_t default_type = 0;  // the name of the value that is shown, as a text; 0: not said

  [[nodiscard]] std::string text(std::uint64_t index) const {
    return index < texts.size() ? std::string(texts[index]) : std::string();
  }
};

// The id of a message, and the number of another field of it.
std::optional<std::pair<std::uint64_t, std::uint64_t>> read_pair(std::string_view bytes,
                                                                 std::uint64_t first,
                                                                 std::uint64_t second) {
  std::pair<std::uint64_t, std::uint64_t> pair;
  PprofFields fields(bytes);
  while (fields.next()) {
    if (fields.id() == first) pair.first = fields.number();
    if (fields.id() == second) pair.second = fields.number();
  }
  return fields.whole() ? std::optional(pair) : std::nullopt;
}

bool read_location(std::string_view bytes, Tables& tables) {
  std::uint64_t id = 0;
  PprofLocation location;
  PprofFields fields(bytes);
  while (fields.next()) {
    if (fields.id() == 1) id = fields.number();
    if (fields.id() == 2) location.mapping = fields.number();
    if (fields.id() != 4) continue;
    const auto line = read_pair(fields.bytes(), 1, 2);
    if (!line) return false;
    location.functions.push_back(line->first);
  }
  tables.locations[id] = std::move(location);
  return fields.whole();
}

bool read_table(PprofFields& fields, Tables& tables) {
  const auto put = [&](auto& map, std::uint64_t field) {
    const auto pair = read_pair(fields.bytes(), 1, field);
    if (pair) map[pair->first] = pair->second;
    return pair.has_value();
  };
  switch (fields.id()) {
    case 1: {
      const auto type = read_pair(fields.bytes(), 1, 2);
      if (type) tables.value_types.push_back(*type);
      return type.has_value();
    }
    case 2:
      tables.samples.push_back(fields.bytes());
      return true;
    case 3:
      return put(tables.mappings, 5);
    case 4:
      return read_location(fields.bytes(), tables);
    case 5:
      return put(tables.functions, 2);
    case 6:
      tables.texts.push_back(fields.bytes());
      return true;
    case 10:
      tables.duration_ns = std::min(fields.number(), kMaxStackValue);
      return true;
    case 12:
      tables.period = std::min(fields.number(), kMaxStackValue);
      return true;
    case 13:
      fields.append_to(tables.comments);
      return fields.whole();
    case 14:
      tables.default_type = fields.number();
      return true;
    default:
      return true;
  }
}

// "[libx.so]" of "/usr/lib/libx.so".
std::string in_brackets(const std::string& module) {
  std::string text = "[";
  return text.append(module, module.rfind('/') + 1).append("]");
}

// Makes stacks of the samples of a file.
class StackMaker {
 public:
  explicit StackMaker(const Tables& tables) : tables_(tables) {}

  // Finds the value and the number of samples. Nothing: the file does not have this quantity.
  std::optional<Quantity> choose_values(std::optional<Quantity> wanted);
  [[nodiscard]] bool counts_samples() const { return count_.has_value(); }
  bool add(std::string_view sample, NamedProfile& profile);
  [[nodiscard]] std::size_t frames() const { return frames_; }

 private:
  void choose_count(std::string_view name);
  std::uint32_t function(std::uint64_t id, std::uint64_t mapping, NamedProfile& profile);
  void add_frames(const std::vector<std::uint64_t>& locations, NamedProfile& profile,
                  NamedProfile::Stack& stack);
  // The name of a phase; empty if there are too many others.
  std::string known_phase(std::string name);
  [[nodiscard]] Weight weight_of(const std::vector<std::uint64_t>& values) const;

  const Tables& tables_;
  std::size_t value_ = 0;
  std::optional<std::size_t> count_;
  std::unordered_map<std::uint64_t, std::unordered_map<std::uint64_t, std::uint32_t>> ids_;
  std::size_t frames_ = 0;
  std::set<std::string> phases_;
};

std::optional<Quantity> StackMaker::choose_values(std::optional<Quantity> wanted) {
  std::map<Quantity, std::size_t> values;
  std::optional<Quantity> shown = wanted;
  for (std::size_t i = 0; i < tables_.value_types.size(); ++i) {
    const auto [name, unit] = tables_.value_types[i];
    const auto quantity = quantity_of_pprof(tables_.text(name), tables_.text(unit));
    if (!quantity) continue;
    values.try_emplace(*quantity, i);
    if (!shown && name == tables_.default_type) shown = quantity;
  }
  if (!shown && !values.empty()) shown = values.begin()->first;
  if (!shown || !values.contains(*shown)) return std::nullopt;
  value_ = values.at(*shown);
  choose_count(facts_of(*shown).pprof_number);
  return shown;
}

// Chooses the values that are the number of samples: those of this name or, if no count has it, the
// first count. In profiles of CPU time they have various names.
void StackMaker::choose_count(std::string_view name) {
  for (std::size_t i = tables_.value_types.size(); i-- > 0;) {
    if (tables_.text(tables_.value_types[i].second) != "count") continue;
    if (count_ && tables_.text(tables_.value_types[*count_].first) == name) continue;
    count_ = i;
  }
}

std::uint32_t StackMaker::function(std::uint64_t id, std::uint64_t mapping, NamedProfile& profile) {
  const auto [known, added] =
      ids_[mapping].try_emplace(id, static_cast<std::uint32_t>(profile.functions.size()));
  if (!added) return known->second;
  const auto module = tables_.mappings.find(mapping);
  NamedProfile::Function made{
      {}, module == tables_.mappings.end() ? "[unknown]" : tables_.text(module->second), true};
  if (const auto found = tables_.functions.find(id); found != tables_.functions.end()) {
    made.name = tables_.text(found->second);
  }
  if (made.name.empty()) {
    made.name = made.module;
    made.known = false;
  } else if (made.name == "[unknown]" || made.name == in_brackets(made.module)) {
    made.known = false;  // as kymo writes it
  }
  profile.functions.push_back(std::move(made));
  return known->second;
}

void StackMaker::add_frames(const std::vector<std::uint64_t>& locations, NamedProfile& profile,
                            NamedProfile::Stack& stack) {
  static const PprofLocation kNone;
  for (const std::uint64_t id : locations) {
    const auto found = tables_.locations.find(id);
    const PprofLocation& location = found == tables_.locations.end() ? kNone : found->second;
    frames_ += std::max<std::size_t>(location.functions.size(), 1);
    if (frames_ > kMaxFramesOfFile) return;
    for (const std::uint64_t one : location.functions) {
      stack.functions.push_back(function(one, location.mapping, profile));
    }
    if (location.functions.empty()) {
      stack.functions.push_back(function(0, location.mapping, profile));
    }
  }
}

Weight StackMaker::weight_of(const std::vector<std::uint64_t>& values) const {
  const auto at = [&](std::size_t i) {  // a negative value, of a difference, counts as nothing
    const std::uint64_t value = i < values.size() ? values[i] : 0;
    return value > std::uint64_t{std::numeric_limits<std::int64_t>::max()}
               ? 0
               : std::min(value, kMaxStackValue);
  };
  return {count_ ? at(*count_) : 1, at(value_)};
}

std::string StackMaker::known_phase(std::string name) {
  if (phases_.size() < kMaxPhases) phases_.insert(name);
  return phases_.contains(name) ? std::move(name) : std::string();
}

bool StackMaker::add(std::string_view sample, NamedProfile& profile) {
  std::vector<std::uint64_t> locations;
  std::vector<std::uint64_t> values;
  NamedProfile::Stack stack;
  PprofFields fields(sample);
  while (fields.next()) {
    if (fields.id() == 1) fields.append_to(locations);
    if (fields.id() == 2) fields.append_to(values);
    if (fields.id() != 3) continue;
    const auto label = read_pair(fields.bytes(), 1, 2);
    if (!label) return false;
    const std::string key = tables_.text(label->first);
    if (key == "process") stack.process = tables_.text(label->second);
    if (key == "phase") stack.phase = known_phase(tables_.text(label->second));
    if (key == "role") stack.role = tables_.text(label->second);
    if (key == "service") stack.service = tables_.text(label->second);
  }
  add_frames(locations, profile, stack);
  if (!stack.functions.empty() && profile.functions[stack.functions.back()].name == kTruncated) {
    stack.functions.pop_back();
    stack.truncated = true;
  }
  stack.weight = weight_of(values);
  profile.stacks.push_back(std::move(stack));
  return fields.whole();
}

// Unpacks gzip. The text is empty if the bytes are damaged, and longer than allowed if it is.
std::string unpacked(const std::string& bytes) {
  constexpr int kWindow = MAX_WBITS + 16;
  constexpr std::size_t kPiece = std::size_t{1} << 20U;
  z_stream stream{};
  if (::inflateInit2(&stream, kWindow) != Z_OK) return {};
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::string text;
  int result = Z_OK;
  while (result == Z_OK && text.size() <= kMaxPprofBytes) {
    const std::size_t before = text.size();
    text.resize(before + kPiece);
    stream.next_out = reinterpret_cast<Bytef*>(text.data() + before);
    stream.avail_out = static_cast<uInt>(kPiece);
    result = ::inflate(&stream, Z_NO_FLUSH);
    text.resize(before + kPiece - stream.avail_out);
  }
  ::inflateEnd(&stream);
  return result == Z_STREAM_END || text.size() > kMaxPprofBytes ? text : std::string();
}

// Reads those comments of a profile that kymo writes.
void read_comments(const Tables& tables, NamedProfile& profile) {
  constexpr std::string_view kLost = kLostComment;
  constexpr std::string_view kPhase = kPhaseComment;
  for (const std::uint64_t comment : tables.comments) {
    const std::string text = tables.text(comment);
    if (text.starts_with(kLost)) {
      std::uint64_t lost = 0;
      std::from_chars(text.data() + kLost.size(), text.data() + text.size(), lost);
      profile.lost = std::min(lost, kMaxStackValue);
    } else if (text.starts_with(kPhase) && profile.phases.size() < kMaxPhases) {
      profile.add_phase(text.substr(kPhase.size()));
    }
  }
}

Error damaged(const std::string& path) {
  return {Code::data_loss, path + " is no profile of pprof, or is damaged"};
}

// A name from the file, cut to a short length, with only printable characters.
std::string short_name(const std::string& text) {
  constexpr std::size_t kMaxLength = 40;
  std::string name = text.substr(0, kMaxLength);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c <= ' ' || c > '~'; }, '?');
  return name;
}

// The error that a file does not have the wanted quantity. It names those that the file has.
Error lacks_quantity(const std::string& path, const Tables& tables,
                     std::optional<Quantity> wanted) {
  std::string all;
  for (const auto& [name, unit] : tables.value_types) {
    all.append(all.empty() ? "" : ", ").append(short_name(tables.text(name)));
    all.append(" in ").append(short_name(tables.text(unit)));
  }
  const std::string what = wanted ? std::string("no values of ") + facts_of(*wanted).what
                                  : std::string("no values that kymo shows");
  return {Code::failed_precondition, path + " has " + what + ", but " + all};
}

Error too_large(const std::string& path) {
  return {Code::failed_precondition,
          path + " is too large: kymo reads at most 512 MiB and 33 million frames of a profile"};
}

}  // namespace

Result<NamedProfile> read_pprof(const std::string& bytes, const std::string& path,
                                std::optional<Quantity> wanted) {
  const bool packed = bytes.starts_with("\x1f\x8b");
  const std::string text = packed ? unpacked(bytes) : bytes;
  if (text.empty()) return damaged(path);
  if (text.size() > kMaxPprofBytes) return too_large(path);
  Tables tables;
  PprofFields fields(text);
  while (fields.next()) {
    if (!read_table(fields, tables)) return damaged(path);
  }
  if (!fields.whole() || tables.value_types.empty()) return damaged(path);
  NamedProfile profile;
  StackMaker maker(tables);
  const std::optional<Quantity> quantity = maker.choose_values(wanted);
  if (!quantity) return lacks_quantity(path, tables, wanted);
  profile.quantity = *quantity;
  profile.counts_samples = maker.counts_samples();
  profile.duration_ns = tables.duration_ns;
  read_comments(tables, profile);
  if (quantity == Quantity::cpu) profile.period_ns = tables.period;
  for (const std::string_view sample : tables.samples) {
    if (!maker.add(sample, profile)) return damaged(path);
    if (maker.frames() > kMaxFramesOfFile) return too_large(path);
  }
  return profile;
}

}  // namespace kymo::stacks
