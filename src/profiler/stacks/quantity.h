#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// What a stack profile has of each stack.
namespace kymo::stacks {

enum class Quantity : std::uint8_t { cpu, wait, heap, alloc, goroutine, delay };

// How a quantity is named and written. Each has a number, such as of samples, and a value, such as of nanoseconds.
struct QuantityFacts {
  const char* name;     // on command lines and in JSON
  const char* unit;     // of the value: "ns", "bytes" or "count"
  const char* what;     // the value in a sentence: "12 ms of CPU time"
  const char* counted;  // the number in a sentence: "in 12 samples"
  bool
      sorted_by_total;  // the innermost functions are those of the scheduler, whatever the program does
  // The types of the number and of the value in a file of pprof, as Go's net/http/pprof has them. `wait` is kymo's.
  const char* pprof_number;
  const char* pprof_value;
  const char* pprof_unit;
};

const QuantityFacts& facts_of(Quantity quantity);
// Nothing: there is none of this name.
std::optional<Quantity> quantity_named(std::string_view name);
std::vector<std::string> quantity_names();
// The quantity whose value has this type in a file of pprof.
std::optional<Quantity> quantity_of_pprof(std::string_view value, std::string_view unit);

}  // namespace kymo::stacks
