#pragma once

#include <string>
#include <string_view>

#include "kymo/result.h"
#include "profiler/stacks/named_profile.h"

namespace kymo::stacks {

// A profile as one text (JSON), for the process that has asked a confined one to read a file.
std::string text_of(const NamedProfile& profile);

// The profile in such a text. Its author is not trusted: everything that is used is checked.
// Errors: data_loss: it is no such text.
Result<NamedProfile> profile_in(std::string_view text);

}  // namespace kymo::stacks
