#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/preflight/checks.h"
#include "checkpoint/preflight/oci_spec.h"
#include "kymo/result.h"

// What a container's config.json names of this machine is no property of the container: its restore finds what is there
// then. Before a dump, Options::names are held against this machine and the container (name_checks()).
namespace kymo::preflight {

std::span<const Check> name_checks();

// Leaves out what the runtime makes anew in a restore: the kinds in `renewed`, such as "root", or "network" for network
// namespaces that are named by no pid, and the mounts of its own files of the container, whose paths have the
// container's `id`.
void leave_out_renewed(std::vector<HostName>& names, std::string_view renewed,
                       const std::string& id);

// Looks at what a restore would find of `now`. `then`: the names of the dump, all of them; empty: not known.
void look_at_host_names(const std::vector<HostName>& now, const std::vector<HostName>& then,
                        Findings& found);
// Errors: failed_precondition, one line that begins with `tried`: the first thing that was found.
Result<void> check_host_names(const std::string& tried, const std::vector<HostName>& now,
                              const std::vector<HostName>& then);

nlohmann::json to_json(const std::vector<HostName>& names);
// The same from JSON that anybody may have written.
std::vector<HostName> host_names_from(const nlohmann::json& array);

}  // namespace kymo::preflight
