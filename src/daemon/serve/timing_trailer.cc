#include "daemon/serve/timing_trailer.h"

#include <algorithm>
#include <vector>

#include "api/kymo/v1/kymo.pb.h"
#include "daemon/serve/failure_trailer.h"
#include "daemon/serve/trailer_text.h"

namespace kymo::daemon {
namespace {

constexpr std::size_t kMaxErrorBytes = 256;
constexpr std::size_t kOtherBytes = 512;  // for names, the status's number and what gRPC adds

// The most bytes of a binary trailer that fit beside the message, and beside the failure that comes
// with a message. gRPC sends binary trailers in base64.
std::size_t room_beside(std::string_view message) {
  std::size_t taken = kOtherBytes + sent_bytes(message);
  if (!message.empty()) taken += kMaxFailureBytes / 3 * 4;
  return taken >= kAcceptedTrailerBytes
             ? 0
             : std::min(kMaxTrailerBytes, (kAcceptedTrailerBytes - taken) / 4 * 3);
}

void fill(v1::TimedScope& out, const ScopeRecord& scope, std::uint32_t parent) {
  out.set_parent(parent);
  out.set_name(scope.name);
  out.set_category(scope.category);
  out.set_start_ns(scope.start_ns);
  out.set_duration_ns(scope.duration_ns);
  out.set_bytes(scope.bytes);
  out.set_parallel(scope.parallel);
  out.set_redundant(scope.redundant);
  out.set_bytes_redundant(scope.bytes_redundant);
  out.set_error(cut_text(scope.error, kMaxErrorBytes));  // protobuf accepts UTF-8 only
  out.set_unfinished(scope.unfinished);
}

// The scopes whose depth in the tree is at most `deepest`.
v1::TimingTree tree_of(const std::vector<ScopeRecord>& scopes,
                       const std::vector<std::size_t>& depths, std::size_t deepest) {
  v1::TimingTree out;
  std::vector<std::uint32_t> index(scopes.size());
  for (std::size_t i = 0; i < scopes.size(); ++i) {
    if (depths[i] > deepest) continue;
    index[i] = static_cast<std::uint32_t>(out.scopes_size());
    fill(*out.add_scopes(), scopes[i], i == 0 ? 0 : index[scopes[i].parent]);
  }
  return out;
}

}  // namespace

std::string timing_trailer(const ScopeTree& tree, std::string_view message) {
  const std::size_t room = room_beside(message);
  const std::vector<ScopeRecord> scopes = tree.records();
  std::vector<std::size_t> depths(scopes.size(), 0);
  for (std::size_t i = 1; i < scopes.size(); ++i) depths[i] = depths[scopes[i].parent] + 1;
  for (std::size_t deepest = *std::max_element(depths.begin(), depths.end());; --deepest) {
    v1::TimingTree out = tree_of(scopes, depths, deepest);
    out.set_scopes_left_out(tree.dropped() + scopes.size() -
                            static_cast<std::size_t>(out.scopes_size()));
    if (out.ByteSizeLong() <= room) return out.SerializeAsString();
    if (deepest == 0) return {};
  }
}

}  // namespace kymo::daemon
