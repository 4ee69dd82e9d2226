#pragma once

#include <vector>

#include "base/file.h"
#include "checkpoint/criu/drive/options.h"
#include "kymo/result.h"

namespace kymo::criu {

// Opens the files for a restored process: for reading and writing, or only for reading if they
// cannot be written. One of which only_writes is set is opened only for writing: CRIU restores such
// a file again even if its size has changed. What is written to a regular file is appended. Makes no file.
//
// Errors: name the first file that cannot be opened; invalid_argument if it is a folder.
Result<std::vector<FileDescriptor>> open_inherited(const std::vector<InheritedFile>& files);

}  // namespace kymo::criu
