#include "base/confine/answer.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "base/json_object.h"
#include "base/json_text.h"

namespace kymo::confine {
namespace {

using nlohmann::json;

constexpr int kRound = 100;  // milliseconds, for a cancellation without a descriptor
// The first character of an answer. After kGood comes what was found, after kBad an error as JSON.
constexpr char kGood = '+';
constexpr char kBad = '-';

Error error_in(const std::string& text) {
  const json said = parse_object(text);
  const std::uint64_t code = number_of(said, "code");
  const bool known = code >= static_cast<std::uint64_t>(Code::cancelled) &&
                     code <= static_cast<std::uint64_t>(Code::data_loss);
  return Error{known ? static_cast<Code>(code) : Code::internal, kymo::text_of(said, "message"),
               static_cast<int>(number_of(said, "errno") % 4096)};
}

}  // namespace

End end_of(const Bounds& bounds) {
  if (bounds.time.count() == 0) return std::nullopt;
  return std::chrono::steady_clock::now() + bounds.time;
}

Result<std::string> read_answer(int from, std::uint64_t most, End end, const Cancellation* cancel) {
  std::string answer;
  std::array<char, std::size_t{64} << 10> piece{};
  for (;;) {
    std::array<pollfd, 2> ready{{{from, POLLIN, 0}, {fd_of(cancel), POLLIN, 0}}};
    static_cast<void>(::poll(ready.data(), ready.size(), kRound));
    if (is_asked(cancel)) return Error{Code::cancelled, cancel->why()};
    if (end && std::chrono::steady_clock::now() >= *end) return reader_died();
    if (ready[0].revents == 0) continue;
    const ssize_t got = ::read(from, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error("read a helper's answer", errno);
    if (got == 0) return answer;
    answer.append(piece.data(), static_cast<std::size_t>(got));
    if (answer.size() > most) {
      return Error{Code::resource_exhausted,
                   "the answer is longer than " + std::to_string(most) + " bytes"};
    }
  }
}

std::string text_of(const Result<std::string>& found) {
  if (found) return kGood + *found;
  const Error& error = found.error();
  return kBad + json_text(json{{"code", static_cast<int>(error.code)},
                               {"message", error.message},
                               {"errno", error.errno_value}});
}

Result<std::string> found_in(const std::string& text) {
  if (text.starts_with(kGood)) return text.substr(1);
  if (text.starts_with(kBad)) return error_in(text.substr(1));
  return reader_died();
}

}  // namespace kymo::confine
