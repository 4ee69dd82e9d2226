#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kymo/sink.h"

namespace kymo {

// Like make_tsv_sink() of kymo/sink.h, for a recording that follows others. `earlier` are parts
// that earlier recordings have left, oldest first. keep_bytes includes them, and they are removed
// first.
std::shared_ptr<Sink> make_tsv_sink(std::string path, TsvOptions options,
                                    std::vector<std::string> earlier);

}  // namespace kymo
