#include "profiler/kept/store.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace kymo::profiles {

namespace {

using stacks::Quantity;

constexpr std::array<TypeFacts, 8> kTypes{{
    {Type::cpu, "cpu", Quantity::cpu, false},
    {Type::off_cpu, "off-cpu", Quantity::wait, false},
    {Type::go_cpu, "go-cpu", Quantity::cpu, false},
    {Type::go_heap, "go-heap", Quantity::heap, true},
    {Type::go_alloc, "go-alloc", Quantity::alloc, false},
    {Type::go_goroutine, "go-goroutine", Quantity::goroutine, true},
    {Type::go_block, "go-block", Quantity::delay, false},
    {Type::go_mutex, "go-mutex", Quantity::delay, false},
}};

}  // namespace

std::span<const TypeFacts> all_types() {
  return kTypes;
}

const TypeFacts& facts_of(Type type) {
  return kTypes.at(static_cast<std::size_t>(type));
}

std::string title_of(Type type) {
  switch (type) {
    case Type::go_block:
      return "Go: waiting for channels and locks";
    case Type::go_mutex:
      return "Go: making others wait for a lock";
    default:
      return (type >= Type::go_cpu ? "Go: " : "") + std::string(facts_of(quantity_of(type)).what);
  }
}

std::optional<Type> type_named(std::string_view name) {
  for (const TypeFacts& facts : kTypes) {
    if (name == facts.name) return facts.type;
  }
  return std::nullopt;
}

void Removed::add(const Removed& other) {
  if (other.minutes() == 0) return;
  oldest = minutes() == 0 ? other.oldest : std::min(oldest, other.oldest);
  newest = minutes() == 0 ? other.newest : std::max(newest, other.newest);
  too_old += other.too_old;
  too_many += other.too_many;
}

Range minutes_of(std::int64_t begin_unix_ns, std::int64_t end_unix_ns) {
  const std::int64_t begin = begin_unix_ns / kNanosPerMinute;
  const std::int64_t end = (end_unix_ns + kNanosPerMinute - 1) / kNanosPerMinute;
  return {begin, std::max(end, begin + 1)};
}

}  // namespace kymo::profiles
