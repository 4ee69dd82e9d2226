#include "profiler/stacks/naming_plan.h"

#include <sys/mman.h>

#include <new>

namespace kymo::stacks {
namespace {

constexpr unsigned kMaxFailures = 6;

}  // namespace

NamingPlan::NamingPlan(const Profile& profile) {
  for (const auto& [trace, weight] : profile.traces) {
    for (const Frame& frame : trace.frames) {
      if (frame.module != nullptr) modules_.insert(frame.module);
    }
  }
  void* const shared =
      ::mmap(nullptr, sizeof *reading_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared != MAP_FAILED) reading_ = new (shared) std::atomic<const Module*>(nullptr);
}

NamingPlan::~NamingPlan() {
  if (reading_ != nullptr) ::munmap(reading_, sizeof *reading_);
}

std::vector<int> NamingPlan::files() const {
  std::set<int> files;
  for (const Module* const module : modules_) {
    if (module->file.valid()) files.insert(module->file.get());
  }
  return {files.begin(), files.end()};
}

NamingPlan::Detail NamingPlan::of(const Module& module) const {
  if (module.kind == Module::Kind::kernel) return Detail::all;
  if (names_nothing_) return Detail::nothing;
  const auto less = less_.find(&module);
  return less == less_.end() ? Detail::all : less->second;
}

void NamingPlan::reads(const Module* module) {
  if (reading_ != nullptr) reading_->store(module, std::memory_order_relaxed);
}

// A child that was taken over may have written anything into the shared memory, so it is checked.
bool NamingPlan::read_less() {
  if (names_nothing_) return false;
  const Module* const module =
      reading_ == nullptr ? nullptr : reading_->exchange(nullptr, std::memory_order_relaxed);
  const auto found = modules_.find(module);
  if (++failures_ > kMaxFailures || found == modules_.end() || of(**found) == Detail::nothing) {
    names_nothing_ = true;
    left_out_ = "the names of functions could not be read, so they have those of their modules";
    return true;
  }
  const bool had_all = of(**found) == Detail::all;
  less_[module] = had_all ? Detail::symbols : Detail::nothing;
  left_out_ = had_all ? "the debugging information of " + module->path +
                            " could not be read: its inlined functions have no names"
                      : "the symbols of " + module->path +
                            " could not be read: its functions have no names";
  return true;
}

}  // namespace kymo::stacks
