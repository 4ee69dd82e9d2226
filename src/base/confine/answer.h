#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/cancellation.h"
#include "base/confine/confine.h"
#include "kymo/result.h"

namespace kymo::confine {

// The instant at which the time of such bounds, counted from now, is over. Nothing: no limit.
using End = std::optional<std::chrono::steady_clock::time_point>;
End end_of(const Bounds& bounds);

// Reads the answer of a confined process from a pipe, until all write ends of the pipe are closed.
// Errors: resource_exhausted: it is longer than `most`, or has not come until `end`; cancelled; the
//         system's.
Result<std::string> read_answer(int from, std::uint64_t most, End end,
                                const Cancellation* cancel = nullptr);

// What a confined process found, or its error, as one text for the process that asked.
std::string text_of(const Result<std::string>& found);
// The result in such a text. Its author is not trusted: of an error only the text and a known code
// are taken.
// Errors: also resource_exhausted: the text is no answer, because the confined process was killed.
Result<std::string> found_in(const std::string& text);

}  // namespace kymo::confine
