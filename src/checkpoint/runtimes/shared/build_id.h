#pragma once

#include <string>

#include "kymo/result.h"

namespace kymo::runtime {

// The build id of a program or library, in hexadecimal digits; empty if it has none, or is no ELF file.
// Looks for it where CRIU does: in the notes that the program headers name.
//
// The file may be anybody's: what its headers say is bounded, and nothing but a regular file is read.
// Errors: those of opening and reading the file.
// Cost:   a few system calls.
Result<std::string> build_id_of(const std::string& path);

}  // namespace kymo::runtime
