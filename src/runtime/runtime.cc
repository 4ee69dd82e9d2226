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

std::optional<Kind> kind_named(std::string_view name) {
  for (const Kind kind : {Kind::process, Kind::runc, Kind::podman}) {
    if (name == name_of(kind)) return kind;
  }
  return std::nullopt;
}

}  // namespace kymo::runtime
