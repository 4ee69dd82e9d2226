#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kymo::failures {

// A known failure. Its id is stable: it stands in JSON, in messages and in metrics.
struct Entry {
  std::string id;
  std::string phase;                  // dump, restore, start, both; own: of kymod itself
  std::vector<std::string> patterns;  // parts of the root line, with holes {1} ... {9}, each enough
  std::string what, why, remedy, retry;
  // Forms of the root line with holes {1} ... {9}, and what to say of their values.
  std::vector<std::pair<std::string, std::string>> details;
  // The hole of `details` with a number of bytes, for which the limit SIZE in `remedy` must be enough. Usually empty.
  std::string limit;
};

// All entries of catalogue.json, in its order.
// Threads: any.
const std::vector<Entry>& catalogue();

// The first entry of CRIU's failures that has a pattern in `line`, or nullptr. Special entries stand before general
// ones.
const Entry* entry_for(std::string_view line);
// The same of kymod's own failures, for the error of a request.
const Entry* own_entry_for(std::string_view error);

// The entry with this id, or that of "unknown".
const Entry& entry_of(std::string_view id);

// What the line says of process, file or mount, by the entry's details. Empty if they do not fit.
std::string detail_of(const Entry& entry, std::string_view line);

// The remedy of the entry. SIZE is replaced by the next limit that is enough for so many bytes, such as "8M". If CRIU
// takes no such limit, another remedy.
std::string remedy_for(const Entry& entry, std::uint64_t bytes);
// The same for the bytes in `line`. If it has none, SIZE stays.
std::string remedy_for(const Entry& entry, std::string_view line);

}  // namespace kymo::failures
