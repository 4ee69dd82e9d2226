#include <map>
#include <string>
#include <utility>

#include "profiler/stacks/output.h"
#include "profiler/stacks/pprof_file.h"

namespace kymo::stacks {
namespace {

// Writes a profile whose functions have names: a location for each function.
class NamedWriter {
 public:
  explicit NamedWriter(const NamedProfile& profile) : profile_(profile) {}

  std::string write(std::int64_t begin_unix_ns) {
    for (std::uint64_t i = 0; i < profile_.functions.size(); ++i) {
      add_function(i + 1, profile_.functions[i]);
    }
    for (const NamedProfile::Stack& stack : profile_.stacks) add_sample(stack);
    return file_.finish({profile_.quantity, profile_.period_ns, begin_unix_ns, profile_.duration_ns,
                         profile_.lost, profile_.phases});
  }

 private:
  void add_function(std::uint64_t id, const NamedProfile::Function& function) {
    const auto [mapping, added] = mappings_.try_emplace(function.module, mappings_.size() + 1);
    if (added) file_.add_mapping(mapping->second, function.module, "");
    file_.add_function(id, function.name, "");
    add_location(id, mapping->second);
  }
  void add_location(std::uint64_t function, std::uint64_t mapping) {
    PprofFile::add_line(file_.add_location(function, mapping, 0), function, 0);
  }
  std::uint64_t truncated() {
    if (truncated_ == 0) {
      truncated_ = profile_.functions.size() + 1;
      file_.add_function(truncated_, kTruncated, "");
      add_location(truncated_, 0);
    }
    return truncated_;
  }
  void add_sample(const NamedProfile::Stack& stack) {
    std::vector<std::uint64_t> ids;
    for (const std::uint32_t function : stack.functions) ids.push_back(function + 1);
    if (stack.truncated) ids.push_back(truncated());
    wire::Sample& sample = file_.add_sample(ids, stack.weight);
    for (const auto& [key, value] : {std::pair("process", &stack.process),
                                     {"phase", &stack.phase},
                                     {"role", &stack.role},
                                     {"service", &stack.service}}) {
      if (!value->empty()) file_.add_label(sample, key, *value);
    }
  }

  const NamedProfile& profile_;
  PprofFile file_;
  std::map<std::string, std::uint64_t> mappings_;
  std::uint64_t truncated_ = 0;
};

}  // namespace

std::string pprof(const NamedProfile& profile, std::int64_t begin_unix_ns) {
  return NamedWriter(profile).write(begin_unix_ns);
}

}  // namespace kymo::stacks
