#include "lens/analysis/left_out.h"

#include <algorithm>
#include <utility>

namespace kymo::analysis {

void LeftOut::add(std::uint64_t line, std::string reason) {
  ++lines_;
  if (!spans_.empty() && unlisted_ == 0 && spans_.back().last_line + 1 == line &&
      spans_.back().reason == reason) {
    spans_.back().last_line = line;
    return;
  }
  if (spans_.size() == kMaxSpans) {
    ++unlisted_;
    return;
  }
  spans_.push_back({line, line, std::move(reason)});
}

void LeftOut::add_all(const LeftOut& other, const std::string& name) {
  lines_ += other.lines_;
  unlisted_ += other.unlisted_;
  for (const LeftOutSpan& span : other.spans_) {
    if (spans_.size() < kMaxSpans) {
      spans_.push_back({span.first_line, span.last_line, name + ": " + span.reason});
    } else {
      unlisted_ += span.last_line - span.first_line + 1;
    }
  }
}

std::vector<std::string> LeftOut::sentences() const {
  std::vector<std::string> sentences;
  for (const LeftOutSpan& span : spans_) {
    std::string where = "line " + std::to_string(span.first_line);
    if (span.last_line != span.first_line) {
      where = "lines " + std::to_string(span.first_line) + " to " + std::to_string(span.last_line);
    }
    sentences.push_back(where + ": " + span.reason);
  }
  if (unlisted_ != 0) {
    sentences.push_back("and " + std::to_string(unlisted_) + " lines more");
  }
  return sentences;
}

std::string in_quotes(std::string_view text, std::size_t max_length) {
  std::string safe(text.substr(0, max_length));
  std::replace_if(
      safe.begin(), safe.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return "\"" + safe + (text.size() > max_length ? "...\"" : "\"");
}

}  // namespace kymo::analysis
