#include "runtime/runtime.h"

namespace kymo::runtime {

std::string_view name_of(Kind kind) {
  switch (kind) {
    case Kind::process:
      return "process";
    case Kind::runc:
      return "runc";
    case Kind::podman:
      return "podman";
  }
  return "?";
}

}  // namespace kymo::runtime
