#pragma once

#include <string>

#include "kymo/result.h"

namespace kymo::http {

// A new token: 256 random bits from the kernel, in hexadecimal.
Result<std::string> make_token();

// Reads the token in this file. If there is no such file, makes one with a new token and mode 0600.
// Errors: permission_denied: the mode is not 0600 or 0640, the owner is neither this process' user
//         nor root, or it is a symbolic link or no regular file; data_loss: it holds no token (16
//         to 256 letters and digits).
Result<std::string> load_token(const std::string& path);

}  // namespace kymo::http
