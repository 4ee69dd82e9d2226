#include "checkpoint/preflight/criu_config.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/file.h"
#include "checkpoint/preflight/text.h"

namespace kymo::preflight {
namespace {

constexpr std::string_view kBlanks = " \t\r";
constexpr std::string_view kScriptOption = "--action-script";  // in a file: without the dashes

// Takes the word at the beginning of the line, without quotes. Empty at its end or at a comment.
std::string_view take_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
  if (line.empty() || line.front() == '#') return {};
  const bool quoted = line.front() == '"';
  if (quoted) line.remove_prefix(1);
  const std::size_t end = std::min(line.find_first_of(quoted ? "\"" : kBlanks), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(std::min(end + (quoted ? 1U : 0U), line.size()));
  return word;
}

// "512M" in bytes; `otherwise` if it is no size.
std::uint64_t size_in(std::string_view text, std::uint64_t otherwise) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return otherwise;
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  const std::size_t power = unit.empty() ? 0 : std::string_view("KMG").find(unit.front()) + 1;
  return power > 3 ? otherwise : number << (10 * power);
}

void add_option(std::string_view name, std::string_view value, Options& options) {
  if (name == "tcp-established" || name == "tcp-close") {
    options.tcp_established = true;
  } else if (name == "skip-in-flight") {
    options.skip_in_flight = true;
  } else if (name == "shell-job") {
    options.shell_job = true;
  } else if (name == "ext-unix-sk") {
    options.external_unix_sockets = true;
  } else if (name == "file-locks") {
    options.file_locks = true;
  } else if (name == "link-remap") {
    options.link_remap = true;
  } else if (name == "allow-uprobes") {
    options.allow_uprobes = true;
  } else if (name == "file-validation") {
    options.by_size = value == "filesize";
  } else if (name == "skip-file-rwx-check") {
    options.any_permissions = true;
  } else if (name == "ghost-limit") {
    options.ghost_limit_bytes = size_in(value, options.ghost_limit_bytes);
  } else if (name == "external") {
    options.external.emplace_back(value);
  }
}

// Calls `each` with the name and the value of every option of the file.
template <class Each>
void for_each_option(const std::string& file, const Each& each) {
  const Result<std::string> text = read_file(file);
  if (!text) return;
  for (std::string_view rest = *text; !rest.empty();) {
    std::string_view line = take_line(rest);
    const std::string_view name = take_word(line);
    each(name, take_word(line));
  }
}

}  // namespace

std::vector<std::string> criu_config_files() {
  std::vector<std::string> files{kConfigOfAll};
  if (const char* home = std::getenv("HOME"))
    files.push_back(std::string(home) + "/.criu/default.conf");
  if (const char* named = std::getenv("CRIU_CONFIG_FILE")) files.emplace_back(named);
  return files;
}

std::vector<std::string> configured_scripts(const std::vector<std::string>& files) {
  std::vector<std::string> scripts;
  for (const std::string& file : files) {
    for_each_option(file, [&](std::string_view name, std::string_view value) {
      if (name == kScriptOption.substr(2))
        scripts.push_back(std::string(value) + " (in " + file + ")");
    });
  }
  return scripts;
}

void add_configured(const std::string& file, Options& options) {
  for_each_option(file, [&](std::string_view name, std::string_view value) {
    add_option(name, value, options);
  });
}

}  // namespace kymo::preflight
