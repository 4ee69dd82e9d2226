#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "profiler/stacks/named_profile.h"

namespace kymo::stacks {

// All stacks of a profile as one tree, as a flame graph shows them.
struct FrameTree {
  struct Function {
    std::string name;
    std::string module;  // the file that it is in; empty: it is no function but a process
  };
  struct Node {
    std::uint32_t depth = 0;        // 0: a root
    std::uint32_t function = 0;     // in `functions`
    std::uint64_t self = 0;         // of the stacks that end here
    std::uint64_t self_before = 0;  // the same of an earlier profile (comparison.h)
  };

  std::vector<Function> functions;
  std::vector<Node> nodes;  // each before its children, which are in the order of their names
  Quantity quantity = Quantity::cpu;
  std::uint64_t scale = 1;  // the value of 1 in `self`, which counts samples or is the value itself
};

// Makes such a tree, stack by stack.
//
// Threads: one.
// Cost:    one look into a map for each frame of a stack.
class FrameTreeBuilder {
 public:
  std::uint32_t function(const std::string& name, const std::string& module);
  // `stack`: functions, from the root to the innermost one; not empty.
  void add(const std::vector<std::uint32_t>& stack, std::uint64_t self,
           std::uint64_t self_before = 0);
  [[nodiscard]] FrameTree finish(Quantity quantity, std::uint64_t scale) &&;

 private:
  struct Node {
    std::map<std::uint32_t, std::uint32_t> children;  // by function: the place in `nodes_`
    std::uint64_t self = 0;
    std::uint64_t self_before = 0;
  };
  // The children, the last name first.
  [[nodiscard]] std::vector<std::pair<std::uint32_t, std::uint32_t>> backwards(
      const Node& node) const;

  std::map<std::pair<std::string, std::string>, std::uint32_t> ids_;
  std::vector<FrameTree::Function> functions_;
  std::vector<Node> nodes_{1};  // the first has the roots as its children
};

// The frames of a stack, from the root to the innermost one, as frame_tree() has them. `process`:
// its root; `ids`: for each function of its profile, its id in the builder. Never empty.
std::vector<std::uint32_t> frames_of(const NamedProfile::Stack& stack, const std::string& process,
                                     const std::vector<std::uint32_t>& ids,
                                     FrameTreeBuilder& builder);

// The roots are the processes, by their names, where these are known. In a profile of a dump or
// restore, the roots are CRIU and the target, and the processes are below them. The numbers of the
// tree are samples if the time between samples is known, otherwise values.
FrameTree frame_tree(const NamedProfile& profile);

}  // namespace kymo::stacks
