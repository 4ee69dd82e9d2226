#include <zlib.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "profiler/stacks/named_profile.h"
#include "profiler/stacks/output.h"
#include "profiler/stacks/pprof.pb.h"

namespace kymo::stacks {
namespace {

constexpr std::size_t kMaxPprofBytes = std::size_t{512} << 20U;
constexpr std::size_t kMaxPhases = 1000;

// A file, and its messages by their ids.
class Tables {
 public:
  explicit Tables(const wire::Profile& file) : file_(file) {
    for (const wire::Mapping& one : file.mapping()) mappings_[one.id()] = &one;
    for (const wire::Location& one : file.location()) locations_[one.id()] = &one;
    for (const wire::Function& one : file.function()) functions_[one.id()] = &one;
  }

  [[nodiscard]] const wire::Profile& file() const { return file_; }
  // Empty if the file has no such text.
  [[nodiscard]] std::string text(std::int64_t index) const {
    return index >= 0 && index < file_.string_table_size()
               ? file_.string_table(static_cast<int>(index))
               : std::string();
  }
  // The file of a mapping.
  [[nodiscard]] std::string module(std::uint64_t id) const {
    const auto found = mappings_.find(id);
    return found == mappings_.end() ? "[unknown]" : text(found->second->filename());
  }
  // Empty messages if the file has none with this id.
  [[nodiscard]] const wire::Location& location(std::uint64_t id) const {
    return in(locations_, id);
  }
  [[nodiscard]] const wire::Function& function(std::uint64_t id) const {
    return in(functions_, id);
  }

 private:
  template <typename Message>
  using ById = std::unordered_map<std::uint64_t, const Message*>;

  template <typename Message>
  static const Message& in(const ById<Message>& messages, std::uint64_t id) {
    const auto found = messages.find(id);
    return found == messages.end() ? Message::default_instance() : *found->second;
  }

  const wire::Profile& file_;
  ById<wire::Mapping> mappings_;
  ById<wire::Location> locations_;
  ById<wire::Function> functions_;
};

// A value of the file. A negative one, of a difference, counts as nothing.
std::uint64_t limited(std::int64_t value) {
  return value < 0 ? 0 : std::min(static_cast<std::uint64_t>(value), kMaxStackValue);
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
  void add(const wire::Sample& sample, NamedProfile& profile);
  [[nodiscard]] std::size_t frames() const { return frames_; }

 private:
  void choose_count(std::string_view name);
  std::uint32_t function(std::uint64_t id, std::uint64_t mapping, NamedProfile& profile);
  void add_frames(const wire::Sample& sample, NamedProfile& profile, NamedProfile::Stack& stack);
  // The name of a phase; empty if there are too many others.
  std::string known_phase(std::string name);
  [[nodiscard]] Weight weight_of(const wire::Sample& sample) const;

  const Tables& tables_;
  int value_ = 0;
  std::optional<int> count_;
  std::unordered_map<std::uint64_t, std::unordered_map<std::uint64_t, std::uint32_t>> ids_;
  std::size_t frames_ = 0;
  std::set<std::string> phases_;
};

std::optional<Quantity> StackMaker::choose_values(std::optional<Quantity> wanted) {
  std::map<Quantity, int> values;
  std::optional<Quantity> shown = wanted;
  for (int i = 0; i < tables_.file().sample_type_size(); ++i) {
    const wire::ValueType& type = tables_.file().sample_type(i);
    const auto quantity = quantity_of_pprof(tables_.text(type.type()), tables_.text(type.unit()));
    if (!quantity) continue;
    values.try_emplace(*quantity, i);
    if (!shown && type.type() == tables_.file().default_sample_type()) shown = quantity;
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
  const auto& types = tables_.file().sample_type();
  for (int i = types.size(); i-- > 0;) {
    if (tables_.text(types[i].unit()) != "count") continue;
    if (count_ && tables_.text(types[*count_].type()) == name) continue;
    count_ = i;
  }
}

std::uint32_t StackMaker::function(std::uint64_t id, std::uint64_t mapping, NamedProfile& profile) {
  const auto [known, added] =
      ids_[mapping].try_emplace(id, static_cast<std::uint32_t>(profile.functions.size()));
  if (!added) return known->second;
  NamedProfile::Function made{tables_.text(tables_.function(id).name()), tables_.module(mapping),
                              true};
  if (made.name.empty()) {
    made.name = made.module;
    made.known = false;
  } else if (made.name == "[unknown]" || made.name == in_brackets(made.module)) {
    made.known = false;  // as kymo writes it
  }
  profile.functions.push_back(std::move(made));
  return known->second;
}

void StackMaker::add_frames(const wire::Sample& sample, NamedProfile& profile,
                            NamedProfile::Stack& stack) {
  for (const std::uint64_t id : sample.location_id()) {
    const wire::Location& location = tables_.location(id);
    frames_ += static_cast<std::size_t>(std::max(location.line_size(), 1));
    if (frames_ > kMaxFramesOfFile) return;
    for (const wire::Line& line : location.line()) {
      stack.functions.push_back(function(line.function_id(), location.mapping_id(), profile));
    }
    if (location.line().empty()) {
      stack.functions.push_back(function(0, location.mapping_id(), profile));
    }
  }
}

Weight StackMaker::weight_of(const wire::Sample& sample) const {
  const auto at = [&](int i) { return i < sample.value_size() ? limited(sample.value(i)) : 0; };
  return {count_ ? at(*count_) : 1, at(value_)};
}

std::string StackMaker::known_phase(std::string name) {
  if (phases_.size() < kMaxPhases) phases_.insert(name);
  return phases_.contains(name) ? std::move(name) : std::string();
}

void StackMaker::add(const wire::Sample& sample, NamedProfile& profile) {
  NamedProfile::Stack stack;
  for (const wire::Label& label : sample.label()) {
    const std::string key = tables_.text(label.key());
    if (key == "process") stack.process = tables_.text(label.str());
    if (key == "phase") stack.phase = known_phase(tables_.text(label.str()));
    if (key == "role") stack.role = tables_.text(label.str());
    if (key == "service") stack.service = tables_.text(label.str());
  }
  add_frames(sample, profile, stack);
  if (!stack.functions.empty() && profile.functions[stack.functions.back()].name == kTruncated) {
    stack.functions.pop_back();
    stack.truncated = true;
  }
  stack.weight = weight_of(sample);
  profile.stacks.push_back(std::move(stack));
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
  for (const std::int64_t comment : tables.file().comment()) {
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
  for (const wire::ValueType& type : tables.file().sample_type()) {
    all.append(all.empty() ? "" : ", ").append(short_name(tables.text(type.type())));
    all.append(" in ").append(short_name(tables.text(type.unit())));
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
  wire::Profile file;
  if (!file.ParseFromString(text) || file.sample_type().empty()) return damaged(path);
  const Tables tables(file);
  NamedProfile profile;
  StackMaker maker(tables);
  const std::optional<Quantity> quantity = maker.choose_values(wanted);
  if (!quantity) return lacks_quantity(path, tables, wanted);
  profile.quantity = *quantity;
  profile.counts_samples = maker.counts_samples();
  profile.duration_ns = limited(file.duration_nanos());
  read_comments(tables, profile);
  if (quantity == Quantity::cpu) profile.period_ns = limited(file.period());
  for (const wire::Sample& sample : file.sample()) {
    maker.add(sample, profile);
    if (maker.frames() > kMaxFramesOfFile) return too_large(path);
  }
  return profile;
}

}  // namespace kymo::stacks
