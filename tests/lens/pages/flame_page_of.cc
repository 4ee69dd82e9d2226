// flame_page_of: reads a profile from its input, and prints its page. Each line has a value and, separated by tabs, the
// frames from the root on. A frame is NAME or NAME@MODULE.

#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "lens/report/flame_page.h"

int main() {
  kymo::stacks::FrameTreeBuilder builder;
  constexpr std::uint64_t kPeriod = 10'000'000;
  std::uint64_t sum = 0;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream fields(line);
    std::string field;
    std::getline(fields, field, '\t');
    const std::uint64_t value = std::stoull(field);
    std::vector<std::uint32_t> stack;
    while (std::getline(fields, field, '\t')) {
      const std::size_t at = field.find('@');
      stack.push_back(builder.function(
          field.substr(0, at), at == std::string::npos ? std::string() : field.substr(at + 1)));
    }
    builder.add(stack, value);
    sum += value;
  }
  nlohmann::ordered_json about = {{"title", "</script><img src=x onerror=document.title='taken'>"},
                                  {"kind", "cpu"},
                                  {"duration_ns", 2 * kPeriod * sum},
                                  {"samples", sum},
                                  {"ns", kPeriod * sum},
                                  {"lost", 2},
                                  {"lost_mappings", 0},
                                  {"frames", 100},
                                  {"unknown_frames", 0},
                                  {"truncated", 0}};
  const kymo::Result<std::string> page = kymo::report::flame_page(kymo::report::flame_data(
      std::move(about), std::move(builder).finish(kymo::stacks::Quantity::cpu, kPeriod)));
  if (!page) return 1;
  std::cout << *page;
  return std::cout.flush() ? 0 : 1;
}
