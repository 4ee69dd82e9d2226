#include <map>
#include <tuple>

#include "profiler/stacks/output.h"
#include "profiler/stacks/pprof_file.h"

namespace kymo::stacks {
namespace {

class Writer {
 public:
  Writer(const Profile& profile, Symbols& symbols) : profile_(profile), symbols_(symbols) {}

  std::string write();

 private:
  std::uint64_t mapping(const Module* module);
  std::uint64_t function(const Line& line);
  std::uint64_t location(const Frame& frame);
  std::uint64_t truncated();
  void add_location(std::uint64_t id, const Frame& frame, const std::vector<Line>& lines);
  void add_sample(const Trace& trace, const Weight& weight);

  const Profile& profile_;
  Symbols& symbols_;
  PprofFile file_;
  std::map<const Module*, std::uint64_t> mappings_;
  std::map<std::tuple<std::string, std::string>, std::uint64_t> functions_;
  std::map<Frame, std::uint64_t> locations_;
  std::uint64_t next_location_ = 1;
  std::uint64_t truncated_ = 0;
};

std::uint64_t Writer::mapping(const Module* module) {
  if (module == nullptr) return 0;
  const auto [found, added] = mappings_.try_emplace(module, mappings_.size() + 1);
  if (added) file_.add_mapping(found->second, module->path, symbols_.build_id(*module));
  return found->second;
}

std::uint64_t Writer::function(const Line& line) {
  const auto [found, added] =
      functions_.try_emplace({line.function, line.file}, functions_.size() + 1);
  if (added) file_.add_function(found->second, line.function, line.file);
  return found->second;
}

void Writer::add_location(std::uint64_t id, const Frame& frame, const std::vector<Line>& lines) {
  wire::Location& location = file_.add_location(id, mapping(frame.module), frame.address);
  for (const Line& one : lines) PprofFile::add_line(location, function(one), one.line);
}

std::uint64_t Writer::location(const Frame& frame) {
  const auto [found, added] = locations_.try_emplace(frame, next_location_);
  if (added) add_location(next_location_++, frame, symbols_.at(frame).lines);
  return found->second;
}

std::uint64_t Writer::truncated() {
  if (truncated_ == 0) {
    truncated_ = next_location_++;
    add_location(truncated_, {}, {{kTruncated, {}, 0}});
  }
  return truncated_;
}

void Writer::add_sample(const Trace& trace, const Weight& weight) {
  std::vector<std::uint64_t> ids;
  for (const Frame& frame : trace.frames) ids.push_back(location(frame));
  if (trace.truncated) ids.push_back(truncated());
  wire::Sample& sample = file_.add_sample(ids, weight);
  file_.add_label(sample, "process", trace.process);
  file_.add_label(sample, "thread", trace.thread);
  for (const auto& [key, value] : {std::pair("container", &trace.container),
                                   {"phase", &trace.phase},
                                   {"role", &trace.role},
                                   {"service", &trace.service}}) {
    if (!value->empty()) file_.add_label(sample, key, *value);
  }
  file_.add_label(sample, "pid", trace.pid);
}

std::string Writer::write() {
  for (const auto& [trace, weight] : profile_.traces) add_sample(trace, weight);
  return file_.finish({profile_.waits ? Quantity::wait : Quantity::cpu, profile_.period_ns,
                       profile_.begin_unix_ns, profile_.duration_ns, profile_.counts.lost,
                       profile_.phases});
}

}  // namespace

std::string pprof(const Profile& profile, Symbols& symbols) {
  return Writer(profile, symbols).write();
}

}  // namespace kymo::stacks
