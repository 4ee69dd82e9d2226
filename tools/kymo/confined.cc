#include "confined.h"

#include <charconv>
#include <filesystem>
#include <utility>

#include "base/confine/run.h"
#include "base/recording_name.h"
#include "lens/analysis/find_recordings.h"
#include "print.h"

namespace kymo::cli {
namespace {

confine::Bounds bounds_of(const std::vector<std::string>& paths,
                          const std::vector<int>& descriptors) {
  constexpr std::chrono::hours kChecksumsTime{1};
  confine::Bounds bounds;
  bounds.memory_bytes = std::uint64_t{8} << 30;
  bounds.cpu_time = kChecksumsTime;
  bounds.time = std::chrono::seconds(0);  // its user can end it
  bounds.answer_bytes = std::uint64_t{2} << 30;
  bounds.threads = true;
  bounds.descriptors = descriptors;
  bounds.readable = {"/proc"};  // to see whether a recorder still runs
  for (const std::string& path : paths) {
    bounds.readable.push_back(path);
    // CRIU's work folder is beside the folder of the images.
    bounds.readable.push_back(std::filesystem::path(absolute_path(path)).parent_path());
  }
  return bounds;
}

// Each text with its length before it.
std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += std::to_string(text.size()) + '\n' + text;
  return all;
}

// The texts in `all`. Those that do not fit are empty.
std::vector<std::string> split_texts(const std::string& all, std::size_t count) {
  std::vector<std::string> texts(count);
  const char* at = all.data();
  const char* const end = at + all.size();
  for (std::string& text : texts) {
    std::size_t size = 0;
    const auto [after, error] = std::from_chars(at, end, size);
    if (error != std::errc() || after == end || size > static_cast<std::size_t>(end - after) - 1) {
      break;
    }
    text.assign(after + 1, size);
    at = after + 1 + size;
  }
  return texts;
}

}  // namespace

void look_confined(Context& context, const std::vector<std::string>& paths,
                   const std::function<void()>& look, const std::vector<int>& descriptors) {
  const Result<int> code = confine::run_confined(bounds_of(paths, descriptors), [&] {
    look();
    return context.exit_code;
  });
  if (!code) return fail(context, code.error());
  context.exit_code = *code;
}

std::vector<std::string> make_confined(
    Context& context, const std::vector<std::string>& paths, std::size_t count,
    const std::function<void(std::vector<std::string>& texts)>& make,
    const std::vector<int>& descriptors) {
  const Result<confine::Answer> answer =
      confine::ask_confined(bounds_of(paths, descriptors), [&](std::string& all) {
        std::vector<std::string> texts(count);
        make(texts);
        all = joined(texts);
        return context.exit_code;
      });
  if (!answer) {
    fail(context, answer.error());
    return std::vector<std::string>(count);
  }
  context.exit_code = answer->exit_code;
  return split_texts(answer->text, count);
}

std::vector<std::string> with_recordings(const std::vector<std::string>& paths) {
  std::vector<std::string> all = paths;
  for (const std::string& path : paths) {
    const Result<std::vector<std::string>> found = analysis::find_recordings(path);
    if (!found) continue;
    for (const std::string& recording : *found) {
      const std::string stem = recording_stem(recording);
      all.insert(all.end(), {recording, stem + ".meta.json", stem + ".gaps.tsv"});
    }
  }
  return all;
}

}  // namespace kymo::cli
