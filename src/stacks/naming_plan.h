#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "stacks/module.h"
#include "stacks/profile.h"

namespace kymo::stacks {

// How much is read of each module of a profile to find names. The process that reads them has no rights, and a module may
// end it, or may need more memory or time than is allowed. Then less is read of that module, and the names of all others
// are still found: first without its debugging information, then nothing of it.
//
//   NamingPlan plan(profile);
//   do {
//     // in a child process: Symbols symbols(&plan); ...
//   } while (the child has failed && plan.blame());
//
// Threads:   one. The child process says by shared memory what it reads.
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

  // In the child: this module is read now. Null: none.
  void reads(const Module* module);

  // After the child has failed: reads less of what it was reading. Returns false if there is no reason to try it again.
  bool blame();
  // What the last blame() has left out, as one sentence without its end.
  [[nodiscard]] const std::string& left_out() const { return left_out_; }

 private:
  std::set<const Module*> modules_;
  std::map<const Module*, Detail> less_;
  std::atomic<const Module*>* reading_ = nullptr;  // shared with the child
  unsigned blamed_ = 0;
  bool names_nothing_ = false;
  std::string left_out_;
};

}  // namespace kymo::stacks
