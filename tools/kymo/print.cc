#include "print.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "lens/report/human.h"
#include "lens/report/table.h"

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

void print_table(std::vector<std::vector<std::string>> rows, std::optional<std::size_t> gives_way) {
  const std::optional<std::size_t> width =
      gives_way ? width_of_terminal(STDOUT_FILENO) : std::nullopt;
  if (width) report::shorten_column(rows, *gives_way, *width);
  std::cout << report::columns(std::move(rows));
}

std::optional<std::size_t> width_of_terminal(int descriptor) {
  winsize size{};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return {};
  return size.ws_col - 1U;  // text in the last column may wrap the line
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
