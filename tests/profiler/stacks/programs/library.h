#pragma once

#include <cstdint>

// Uses the CPU for two milliseconds and adds the time to `own`. Calls `back` and returns its result.
[[gnu::visibility("default")]] std::uint64_t in_library(std::uint64_t (*back)(),
                                                        std::uint64_t* own);
