#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "kymo/export.h"
#include "kymo/sink.h"

namespace kymo {

// The format of gVisor's profiling file, for its tools (docs/formats.md).
enum class AnnotatedFormat : std::uint8_t {
  plain,  // one file that describes itself
  lossy,  // plain, with a prefix and a checksum on each line: for a log that may lose lines
};

// Makes a sink that writes PATH, which must not exist yet, in gVisor's format. This format has no
// room for the list of gaps. If a write fails, what it left in the file is removed again. If
// somebody removes the file or cuts it off, every later write fails.
KYMO_API std::shared_ptr<Sink> make_annotated_sink(std::string path, AnnotatedFormat format);
// The same, to a stream such as standard error. The caller keeps the stream; the sink does not
// close it.
KYMO_API std::shared_ptr<Sink> make_annotated_sink(int fd, AnnotatedFormat format);

}  // namespace kymo
