#include "lens/report/weight.h"

#include <string_view>

#include "lens/report/human.h"

namespace kymo::report {

std::string value_text(stacks::Quantity quantity, std::uint64_t value) {
  const std::string_view unit = facts_of(quantity).unit;
  if (unit == "ns") return duration(value);
  return unit == "bytes" ? bytes(value) : with_commas(value);
}

std::string weight_sentence(stacks::Quantity quantity, const stacks::Weight& sum,
                            std::uint64_t duration_ns) {
  const stacks::QuantityFacts& facts = facts_of(quantity);
  std::string text = with_commas(sum.samples) + " " + facts.counted;
  const bool known = sum.value != 0 || sum.samples == 0;  // folded stacks have only samples
  if (known && std::string_view(facts.unit) != "count") {
    text = value_text(quantity, sum.value) + " of " + facts.what + " in " + text;
  }
  return duration_ns == 0 ? text : text + " of " + duration(duration_ns);
}

}  // namespace kymo::report
