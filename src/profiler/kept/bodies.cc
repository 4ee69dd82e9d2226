#include "profiler/kept/bodies.h"

#include "base/fnv.h"

namespace kymo::profiles {
namespace {

void add_number(std::uint64_t number, std::string& to) {
  for (; number >= 0x80; number >>= 7U) to += static_cast<char>(number | 0x80U);
  to += static_cast<char>(number);
}

// Takes a number from the beginning; nothing if there is none.
std::optional<std::uint64_t> take_number(std::string_view& from) {
  std::uint64_t number = 0;
  for (unsigned shift = 0; shift < 64 && !from.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(from.front());
    from.remove_prefix(1);
    number |= std::uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) return number;
  }
  return std::nullopt;
}

void add_text(std::string_view text, std::string& to) {
  add_number(text.size(), to);
  to += text;
}

std::optional<std::string> take_text(std::string_view& from) {
  const std::optional<std::uint64_t> size = take_number(from);
  if (!size || *size > from.size()) return std::nullopt;
  std::string text(from.substr(0, *size));
  from.remove_prefix(*size);
  return text;
}

}  // namespace

std::string body_of(const StoredStack& stack) {
  std::string body;
  add_text(stack.process, body);
  add_number(stack.truncated ? 1 : 0, body);
  for (const std::uint64_t function : stack.functions) add_number(function, body);
  return body;
}

std::optional<StoredStack> stack_in(std::string_view body) {
  StoredStack stack;
  std::optional<std::string> process = take_text(body);
  const std::optional<std::uint64_t> truncated = process ? take_number(body) : std::nullopt;
  if (!truncated) return std::nullopt;
  stack.process = *std::move(process);
  stack.truncated = *truncated != 0;
  while (!body.empty()) {
    const std::optional<std::uint64_t> function = take_number(body);
    if (!function) return std::nullopt;
    stack.functions.push_back(*function);
  }
  return stack;
}

std::string body_of(const stacks::NamedProfile::Function& function) {
  std::string body;
  add_number(function.known ? 1 : 0, body);
  add_text(function.module, body);
  add_text(function.name, body);
  return body;
}

std::optional<stacks::NamedProfile::Function> function_in(std::string_view body) {
  const std::optional<std::uint64_t> known = take_number(body);
  std::optional<std::string> module = known ? take_text(body) : std::nullopt;
  std::optional<std::string> name = module ? take_text(body) : std::nullopt;
  if (!name || !body.empty()) return std::nullopt;
  return stacks::NamedProfile::Function{*std::move(name), *std::move(module), *known != 0};
}

std::int64_t hash_of(std::string_view body) {
  return static_cast<std::int64_t>(fnv1a(body));
}

}  // namespace kymo::profiles
