#include "profiles/store.h"

#include <algorithm>

namespace kymo::profiles {

const char* name_of(Type type) {
  return type == Type::cpu ? "cpu" : "off-cpu";
}

stacks::Quantity quantity_of(Type type) {
  return type == Type::cpu ? stacks::Quantity::cpu : stacks::Quantity::wait;
}

std::optional<Type> type_named(std::string_view name) {
  for (const Type type : kTypes) {
    if (name == name_of(type)) return type;
  }
  return std::nullopt;
}

Range minutes_of(std::int64_t begin_unix_ns, std::int64_t end_unix_ns) {
  const std::int64_t begin = begin_unix_ns / kNanosPerMinute;
  const std::int64_t end = (end_unix_ns + kNanosPerMinute - 1) / kNanosPerMinute;
  return {begin, std::max(end, begin + 1)};
}

}  // namespace kymo::profiles
