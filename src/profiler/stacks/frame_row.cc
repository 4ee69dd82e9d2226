#include "profiler/stacks/frame_row.h"

#include <cstring>
#include <type_traits>

namespace kymo::stacks {
namespace {

// The first byte of a message.
enum class Presence : char { absent = 0, present = 1 };

template <typename T>
void put(const T& value, std::string& to) {
  static_assert(std::is_trivially_copyable_v<T>);
  to.append(reinterpret_cast<const char*>(&value), sizeof value);  // NOLINT: its bytes
}

// Takes a message apart. After the first part that is missing, it is wrong.
class Parts {
 public:
  explicit Parts(std::string_view message) : left_(message) {}
  template <typename T>
  T take() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    if (left_.size() < sizeof value) {
      wrong_ = true;
      return value;
    }
    std::memcpy(&value, left_.data(), sizeof value);
    left_.remove_prefix(sizeof value);
    return value;
  }
  // Whether all that was taken was there.
  [[nodiscard]] bool good() const { return !wrong_; }
  [[nodiscard]] bool at_end() const { return left_.empty(); }

 private:
  std::string_view left_;
  bool wrong_ = false;
};

}  // namespace

std::string message_of(const std::optional<FrameRow>& row) {
  std::string message;
  put(row ? Presence::present : Presence::absent, message);
  if (!row) return message;
  put(row->begin, message);
  put(row->end, message);
  put(static_cast<std::uint8_t>(row->signal ? 1 : 0), message);
  put(row->ends, message);
  for (const Operation& operation : row->operations) {
    put(operation.atom, message);
    put(operation.number, message);
    put(operation.number2, message);
  }
  return message;
}

std::optional<FrameRow> row_in(std::string_view message, std::uint64_t address) {
  Parts parts(message);
  if (parts.take<Presence>() != Presence::present) return std::nullopt;
  FrameRow row;
  row.begin = parts.take<std::uint64_t>();
  row.end = parts.take<std::uint64_t>();
  row.signal = parts.take<std::uint8_t>() != 0;
  row.ends = parts.take<decltype(row.ends)>();
  std::uint8_t before = 0;
  for (const std::uint8_t end : row.ends) {
    if (end < before) return std::nullopt;
    before = end;
  }
  for (std::size_t i = 0; i < row.ends.back() && parts.good(); ++i) {
    Operation operation;
    operation.atom = parts.take<std::uint8_t>();
    operation.number = parts.take<std::uint64_t>();
    operation.number2 = parts.take<std::uint64_t>();
    row.operations.push_back(operation);
  }
  const bool holds = row.begin <= address && address < row.end;
  if (!parts.good() || !parts.at_end() || !holds) return std::nullopt;
  return row;
}

std::string message_of(const std::optional<std::vector<Segment>>& segments) {
  std::string message;
  put(segments ? Presence::present : Presence::absent, message);
  if (!segments) return message;
  for (const Segment& segment : *segments) {
    put(segment.offset, message);
    put(segment.size, message);
    put(segment.address, message);
  }
  return message;
}

std::optional<std::vector<Segment>> segments_in(std::string_view message) {
  Parts parts(message);
  if (parts.take<Presence>() != Presence::present) return std::nullopt;
  std::vector<Segment> segments;
  while (parts.good() && !parts.at_end()) {
    Segment segment;
    segment.offset = parts.take<std::uint64_t>();
    segment.size = parts.take<std::uint64_t>();
    segment.address = parts.take<std::uint64_t>();
    segments.push_back(segment);
  }
  return parts.good() ? std::optional(segments) : std::nullopt;
}

}  // namespace kymo::stacks
