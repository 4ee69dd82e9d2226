#include "daemon/serve/failure_trailer.h"

#include <string_view>

#include "api/kymo/v1/findings.pb.h"
#include "base/json_text.h"
#include "checkpoint/failures/explain.h"
#include "daemon/serve/trailer_text.h"

namespace kymo::daemon {
namespace {

// The most bytes of each text. Together with their tags they fit into kMaxFailureBytes. All of the
// catalogue is shorter, but what a text names, such as a path, can be longer.
constexpr std::size_t kMaxWhat = 320;
constexpr std::size_t kMaxWhy = 240;
constexpr std::size_t kMaxRemedy = 448;
constexpr std::size_t kMaxRetry = 96;
constexpr std::size_t kMaxRoot = 256;

// The text if it has at most so many bytes, else whole words of its beginning and "…". protobuf
// accepts UTF-8 only.
std::string sent(const std::string& text, std::size_t most) {
  constexpr std::string_view kMore = "…";
  std::string valid = valid_utf8(text);
  if (valid.size() <= most) return valid;
  std::string begin = cut_text(valid, most - kMore.size());
  // A word that is as long as this has no end worth looking for.
  const std::size_t space = begin.rfind(' ');
  if (space != std::string::npos && space > begin.size() / 2) begin.resize(space);
  return begin.append(kMore);
}

}  // namespace

std::string failure_trailer(const Error& error) {
  const failures::Explanation why = failures::of_error(error);
  v1::Failure failure;
  failure.set_id(why.id);
  failure.set_what(sent(why.what, kMaxWhat));
  failure.set_why(sent(why.why, kMaxWhy));
  failure.set_remedy(sent(why.remedy, kMaxRemedy));
  failure.set_retry(sent(why.retry, kMaxRetry));
  failure.set_root(sent(why.root, kMaxRoot));
  return failure.SerializeAsString();
}

}  // namespace kymo::daemon
