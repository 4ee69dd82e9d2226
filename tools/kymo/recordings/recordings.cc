#include "recordings/recordings.h"

#include <chrono>
#include <map>

#include "base/recording_name.h"
#include "lens/analysis/finish.h"
#include "print.h"

namespace kymo::cli {
namespace {

std::string output_for(const std::string& asked, const std::string& recording) {
  const std::string stem = recording_stem(recording);
  const std::string name = stem.substr(stem.rfind('/') + 1);
  const std::size_t slash = asked.rfind('/');
  const std::size_t begin = slash == std::string::npos ? 0 : slash + 1;
  const std::size_t dot = asked.rfind('.');
  const std::size_t ending =
      dot == std::string::npos || dot <= begin ? asked.size() : dot;  // none, or a hidden file's
  return asked.substr(0, ending) + "-" + name + asked.substr(ending);
}

}  // namespace

void wait_for_recordings(const std::vector<std::string>& paths) {
  constexpr std::chrono::seconds kMax(3);
  const std::vector<std::string> unfinished = analysis::about_to_end(paths);
  if (unfinished.empty()) return;
  say(unfinished.front() +
      (unfinished.size() == 1 ? "" : " and " + std::to_string(unfinished.size() - 1) + " more") +
      ": still being written, waiting up to 3 s");
  for (const std::string& path : analysis::wait_until_ended(unfinished, kMax)) {
    say(path + ": still unfinished");
  }
}

void add_recording_option(CLI::App& verb, Context& context) {
  verb.add_flag("--wait-for-recording", context.wait_for_recording,
                "Return only when the recording, which goes on for a second, is complete: then the "
                "directory can be copied, or its disk unmounted");
}

void wait_if_asked(Context& context, const std::string& recording) {
  constexpr std::chrono::seconds kMax(60);  // its disk may be slow
  if (!context.wait_for_recording || recording.empty()) return;
  static_cast<void>(analysis::wait_until_ended({recording}, kMax));
  const auto metadata = analysis::read_metadata(recording_stem(recording) + ".meta.json");
  if (!metadata) return fail(context, metadata.error());
  const std::string why =
      analysis::sentence_of(analysis::finish_of(*metadata, recording), *metadata);
  if (!why.empty()) fail(context, {Code::unavailable, recording + ": " + why});
}

Result<std::vector<std::string>> outputs_for(const std::string& asked,
                                             const std::vector<std::string>& recordings) {
  if (recordings.size() == 1) return std::vector<std::string>{asked};
  std::vector<std::string> outputs;
  std::map<std::string, std::string> taken;
  for (const std::string& recording : recordings) {
    outputs.push_back(output_for(asked, recording));
    const auto [other, is_new] = taken.emplace(outputs.back(), recording);
    if (!is_new) {
      return Error{Code::invalid_argument,
                   "write " + asked + ": " + other->second + " and " + recording +
                       " would both be written to " + outputs.back() +
                       "; give recordings with different names, or only one"};
    }
  }
  return outputs;
}

}  // namespace kymo::cli
