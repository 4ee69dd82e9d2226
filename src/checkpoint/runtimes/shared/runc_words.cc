#include "checkpoint/runtimes/shared/runc_words.h"

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>

#include "base/beneath.h"
#include "base/json_text.h"
#include "checkpoint/runtimes/shared/command.h"

namespace kymo::runtime {

using nlohmann::json;

std::vector<std::string> runc_flags(const CheckpointOptions& options) {
  std::vector<std::string> flags;
  if (options.tcp_established) flags.emplace_back("--tcp-established");
  if (options.shell_job) flags.emplace_back("--shell-job");
  if (options.file_locks) flags.emplace_back("--file-locks");
  if (options.external_unix_sockets) flags.emplace_back("--ext-unix-sk");
  return flags;
}

std::vector<std::string> runc_log_flags(const std::string& log) {
  return {"--log", log, "--log-format", "json"};
}

// The log has one JSON object a line.
std::string last_logged_error(const std::string& log) {
  const Result<std::string> text = read_no_link(log);
  if (!text) return {};
  std::string message;
  std::size_t begin = 0;
  while (begin < text->size()) {
    const std::size_t end = std::min(text->find('\n', begin), text->size());
    const json entry = parse_json(text->substr(begin, end - begin));
    begin = end + 1;
    if (entry.is_object() && entry.value("level", "") == "error") {
      message = last_line(entry.value("msg", ""));
    }
  }
  return message;
}

}  // namespace kymo::runtime
