#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "profiler/stacks/inlined.h"
#include "profiler/stacks/module.h"
#include "profiler/stacks/naming_plan.h"

namespace kymo::stacks {

// The names of an address.
struct Location {
  std::vector<Line> lines;  // as of DebugInfo::lines_at(); at least one
  std::string module;       // the path, or "[kernel]", "[vdso]", "[jit]", "[unknown]"
  bool known = false;  // whether a function was found. Otherwise its name is that of the module.
};

// Finds the names of addresses, when all samples have been taken. The files that it reads are those
// that the modules have open, and of the machine's debugging information
// (/usr/lib/debug/.build-id). Their authors are not trusted.
//
// Threads:   one.
// Ownership: the modules of the frames must live as long as this object.
// Cost:      the symbols of a module are read when its first frame is asked for; an address is
//            looked up once.
class Symbols {
 public:
  // `plan` says how much of each module is read, and is told which module is being read. It must
  // live as long as this object.
  explicit Symbols(NamingPlan* plan = nullptr);
  ~Symbols();
  Symbols(const Symbols&) = delete;
  Symbols& operator=(const Symbols&) = delete;

  // Valid as long as this object.
  const Location& at(const Frame& frame);
  // The build id of a module, in hexadecimal digits; empty if it has none.
  std::string build_id(const Module& module);

 private:
  struct Names;
  Names& names_of(const Module& module);
  Location find(const Frame& frame);

  NamingPlan* plan_;
  std::map<const Module*, std::unique_ptr<Names>> names_;
  std::map<Frame, Location> found_;
};

}  // namespace kymo::stacks
