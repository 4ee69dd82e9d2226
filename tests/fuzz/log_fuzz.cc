#include "checkpoint/failures/explain.h"
#include "checkpoint/failures/root_line.h"
#include "targets.h"

namespace kymo::fuzz {

// Parses a log in one piece and in two pieces.
void log(Bytes data) {
  const std::string text = text_of(data);
  failures::RootFinder whole;
  whole.add(text);
  const failures::Root root = whole.finish();
  failures::RootFinder pieces;
  pieces.add(text.substr(0, text.size() / 2));
  pieces.add(text.substr(text.size() / 2));
  require(pieces.finish().line == root.line, "it is the same however the log is cut");
  require(root.line.size() <= failures::RootFinder::kMaxLine, "a line is bounded");
  require(root.line.find('\n') == std::string::npos, "the root is one line");
  const failures::Explanation why = failures::explain(root);
  require(!why.what.empty() && !why.remedy.empty(), "an explanation says something");
  const Error error{Code::failed_precondition, "dump: " + failures::one_line(why)};
  require(root.line.find("(failure ") != std::string::npos ||
              failures::of_error(error).id == why.id || why.id == "unknown",
          "the failure is found again in the message");
}

}  // namespace kymo::fuzz
