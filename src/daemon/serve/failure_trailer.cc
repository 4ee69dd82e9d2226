#include "daemon/serve/failure_trailer.h"

#include "api/kymo/v1/findings.pb.h"
#include "base/json_text.h"
#include "daemon/serve/trailer_text.h"
#include "failures/explain.h"

namespace kymo::daemon {
namespace {

constexpr std::size_t kMaxText = 192;  // six of them, with their tags, fit into kMaxFailureBytes

// protobuf accepts UTF-8 only.
std::string sent(const std::string& text) {
  return cut_text(valid_utf8(text), kMaxText);
}

}  // namespace

std::string failure_trailer(const Error& error) {
  const failures::Explanation why = failures::of_error(error);
  v1::Failure failure;
  failure.set_id(why.id);
  failure.set_what(sent(why.what));
  failure.set_why(sent(why.why));
  failure.set_remedy(sent(why.remedy));
  failure.set_retry(sent(why.retry));
  failure.set_root(sent(why.root));
  return failure.SerializeAsString();
}

}  // namespace kymo::daemon
