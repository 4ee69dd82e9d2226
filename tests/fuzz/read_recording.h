#pragma once

#include <cstddef>
#include <cstdint>

namespace kymo::tests {

// Reads these bytes as a recording's rows and as its metadata, and checks what must hold for any
// input: rows have the header's shape and never go back in time, every line is a row or left out.
// Ends the process where it does not hold.
void read_recording(const std::uint8_t* data, std::size_t size);

}  // namespace kymo::tests
