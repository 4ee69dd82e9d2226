#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "profiler/stacks/module.h"
#include "profiler/stacks/profile.h"

namespace kymo::stacks {

// How much of each module of a profile is read to find names. A process without rights reads the
// modules. A module may make that process end, or need more memory or time than is allowed. Then
// the process is started again and reads less of that module: first without its debugging
// information, then nothing. The names of all other modules are still found.
//
//   NamingPlan plan(profile);
//   do {
//     // in a child process: Symbols symbols(&plan); ...
//   } while (the child has failed && plan.read_less());
//
// Threads:   one. The child process writes into shared memory which module it reads.
// Ownership: the profile must live as long as the plan.
class NamingPlan {
 public:
  enum class Detail : std::uint8_t { all, symbols, nothing };

  explicit NamingPlan(const Profile& profile);
  ~NamingPlan();
  NamingPlan(const NamingPlan&) = delete;
  NamingPlan& operator=(const NamingPlan&) = delete;

  // The open files of the modules, which the child process needs.
  [[nodiscard]] std::vector<int> files() const;
  [[nodiscard]] Detail of(const Module& module) const;

  // To be called in the child before it reads this module. Null: it reads none.
  void reads(const Module* module);

  // To be called after the child has failed: the next child reads less of the module that it was
  // reading. Returns false if another child would not read less.
  bool read_less();
  // What the last read_less() has left out, as a sentence without a full stop.
  [[nodiscard]] const std::string& left_out() const { return left_out_; }

 private:
  std::set<const Module*> modules_;
  std::map<const Module*, Detail> less_;
  std::atomic<const Module*>* reading_ = nullptr;  // shared with the child
  unsigned failures_ = 0;
  bool names_nothing_ = false;
  std::string left_out_;
};

}  // namespace kymo::stacks
