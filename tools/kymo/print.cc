#include "print.h"

#include <array>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "report/human.h"
#include "report/table.h"

namespace kymo::cli {

void say(const std::string& text) {
  std::cerr << "kymo: " << report::printable(text) << '\n';
}

void fail(Context& context, const Error& error) {
  say(error.message);
  context.exit_code = context.failed_code;
}

void print_json(const nlohmann::json& json) {
  std::cout << json_text(json, 2) << '\n';
}

void print_table(const std::vector<std::vector<std::string>>& rows) {
  std::cout << report::columns(rows);
}

std::string bytes_text(std::uint64_t bytes) {
  const std::string exact = report::with_commas(bytes) + " bytes";
  return bytes < 1024 ? exact : report::bytes(bytes) + " (" + exact + ")";
}

std::string local_time(std::int64_t unix_ns) {
  const auto seconds = static_cast<std::time_t>(unix_ns / 1'000'000'000);
  std::tm parts{};
  localtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &parts);
  return text.data();
}

std::string absolute_path(const std::string& path) {
  std::string absolute = std::filesystem::absolute(path).lexically_normal().string();
  while (absolute.size() > 1 && absolute.back() == '/') absolute.pop_back();
  return absolute;
}

}  // namespace kymo::cli
