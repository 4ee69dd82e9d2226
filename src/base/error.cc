#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>
#include <system_error>

#include "kymo/result.h"

namespace kymo {
namespace {

Code code_of(int errno_value) {
  switch (errno_value) {
    case ENOENT:
    case ESRCH:
      return Code::not_found;
    case EEXIST:
      return Code::already_exists;
    case EACCES:
    case EPERM:
      return Code::permission_denied;
    case ENOSPC:
    case EDQUOT:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
      return Code::resource_exhausted;
    case EINVAL:
      return Code::invalid_argument;
    case EADDRINUSE:
    case ECONNREFUSED:
    case EPIPE:
      return Code::unavailable;
    default:
      return Code::internal;
  }
}

}  // namespace

Error system_error(std::string_view what, int errno_value) {
  return Error{code_of(errno_value),
               std::string(what) + ": " + std::generic_category().message(errno_value),
               errno_value};
}

namespace detail {

void throw_no_value(const Error& error) {
  throw std::runtime_error(error.message);
}
void throw_no_error() {
  throw std::logic_error("kymo::Result: error() was called, and there is no error");
}

}  // namespace detail
}  // namespace kymo
