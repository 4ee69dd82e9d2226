#include "profiler/stacks/symbol_table.h"
#include "targets.h"

namespace kymo::fuzz {
namespace {

void check(const stacks::SymbolTable& table, const std::string& text) {
  for (const std::uint64_t address : {std::uint64_t{0}, std::uint64_t{0x7f0018},
                                      std::uint64_t{0xffffffff81000041}, ~std::uint64_t{0}}) {
    const std::string_view name = table.find(address);
    require(name.empty() || text.find(name) != std::string::npos, "a name is a part of the text");
  }
}

}  // namespace

// Reads the same text as a perf map and as the kernel's list of symbols.
void symbols(Bytes data) {
  const std::string text = text_of(data);
  stacks::SymbolTable map;
  map.add_perf_map(text);
  map.sort();
  check(map, text);
  stacks::SymbolTable kernel;
  kernel.add_kallsyms(text);
  kernel.sort();
  check(kernel, text);
}

}  // namespace kymo::fuzz
