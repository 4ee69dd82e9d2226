#include <string>
#include <utility>

#include "base/json_text.h"
#include "checkpoint/criu/drive/phases.h"
#include "checkpoint/diagnosis/rules.h"

namespace kymo::diagnosis {
namespace {

// "the action script /a.sh (in /etc/criu/default.conf)".
std::string scripts_of(const Facts& facts) {
  std::string text = facts.scripts.size() == 1 ? "the action script " : "the action scripts ";
  for (std::size_t i = 0; i < facts.scripts.size(); ++i) {
    text += (i == 0 ? "" : ", ") + valid_utf8(facts.scripts[i]);
  }
  return text;
}

// What may have run while CRIU waited, and what one can do about it.
std::pair<std::string, std::string> of_hooks(const Facts& facts) {
  constexpr char kFaster[] = "Make it faster, or take it out of CRIU's configuration.";
  if (facts.container) {
    std::string advice =
        facts.restore ? "The runtime answers there itself, and runs the hooks of the container's "
                        "config.json: make those faster, if there are any."
                      : "The runtime answers there itself, and runs no script of yours: find out "
                        "why it was slow (it had no CPU, or waited for a disk).";
    return {"the container runtime (hooks)", std::move(advice)};
  }
  if (!facts.scripts.empty()) return {scripts_of(facts), kFaster};
  // CRIU's images do not say whether a container runtime started it.
  return {"scripts or for the program that started it (hooks)",
          "If a container runtime started CRIU, it answers there itself. Scripts of your own "
          "(action-script), if there are any, can be made faster."};
}

}  // namespace

bool is_long_answer(const Known& known, double share) {
  constexpr double kMinShare = 0.10;
  constexpr double kMinNs = 50.0 * kNsPerMs;
  return share >= kMinShare && share * known.length_ns() >= kMinNs;
}

std::optional<Cause> hooks(const Known& known) {
  const double share = known.share_of_phase(criu::kHooksPhase);
  if (!is_long_answer(known, share)) return {};
  auto [who, advice] = of_hooks(known.facts);
  return Cause{
      "hooks",
      "waited for hooks",
      share,
      "CRIU waited for " + whole_percent(share) + " " + base_of(known.facts) + " for " + who + ".",
      "10 % " + base_of(known.facts) + kOfAnswers,
      std::move(advice)};
}

}  // namespace kymo::diagnosis
