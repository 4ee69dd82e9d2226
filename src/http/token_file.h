#pragma once

#include <string>

#include "kymo/result.h"

namespace kymo::http {

// 256 bits of the kernel's randomness, in hexadecimal.
Result<std::string> make_token();

// The token in this file, which is made, of mode 0600, where it is not there. Errors:
// permission_denied for a file that others than its owner and group can read (its mode must be 0600
// or 0640), one of another user than this one and root, a link, or no regular file; data_loss for
// one that holds no token: 16 to 256 letters and digits.
Result<std::string> load_token(const std::string& path);

}  // namespace kymo::http
