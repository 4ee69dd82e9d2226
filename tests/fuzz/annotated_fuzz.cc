#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "base/adler32.h"
#include "lens/analysis/tsv_reader.h"
#include "read_rows.h"
#include "targets.h"

namespace kymo::fuzz {
namespace {

constexpr std::string_view kPrefix = "GVISOR_METRICS\t";
// Most inputs have no header. With this one, they reach the code that reads rows.
constexpr std::string_view kHead =
    "META\tcalls\t{\"cumulative\":true,\"fields\":[{\"fieldName\":\"result\","
    "\"allowedValues\":[\"ok\"]}]}\nSTART_TIME\t5\nTime (ns)\tcalls[ok]\ta\n";

constexpr std::string_view kWrongSum = "its checksum does not match";

void read_annotated(const std::string& text, bool sums_match) {
  auto reader = analysis::TsvReader::from_text(text, "fuzz");
  if (!reader) {
    require(!reader.error().message.empty(), "an error says something");
    return;
  }
  read_rows(*reader);
  if (const analysis::Metadata* embedded = reader->embedded_metadata(); embedded != nullptr) {
    require(embedded->columns.size() <= reader->columns().size(), "the header's columns at most");
    require(reader->embedded_notes().size() <= 3, "a note for each thing that can be wrong");
  }
  if (sums_match) {
    for (const std::string& sentence : reader->left_out().sentences()) {
      require(sentence.find(kWrongSum) == sentence.npos, "each checksum is right");
    }
  }
}

void append_hex(std::uint32_t value, std::string& out) {
  std::array<char, 8> digits{};
  out.append(digits.data(),
             std::to_chars(digits.data(), digits.data() + digits.size(), value, 16).ptr);
}

// Puts the lines into a log. Each gets its correct checksum.
std::string in_log(std::string_view text) {
  std::string log;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    log.append(kPrefix).append(line).append("\t0x");
    append_hex(adler32(line), log);
    log += '\n';
  }
  return log;
}

}  // namespace

void annotated(Bytes data) {
  const std::string text = text_of(data);
  const std::string whole = std::string(kHead) + text;
  read_annotated(text, false);
  read_annotated(whole, false);
  // Lines that have a prefix already belong to other programs, and quoted text can contain
  // anything.
  read_annotated(in_log(whole),
                 text.find(kPrefix) == text.npos && text.find(kWrongSum) == text.npos);
}

}  // namespace kymo::fuzz
