#pragma once

#include <string>

#include "kymo/result.h"
#include "profiler/stacks/named_profile.h"
#include "verbs.h"

// The file to which a stack profile is written. The ending of its name is its format.
namespace kymo::cli {

enum class ProfileFormat : unsigned char { none, page, pprof, folded };

ProfileFormat profile_format(const std::string& output);

// A profile must not be lost because of a wrong name. An empty name is good.
// Errors: invalid_argument: the ending; those of writing into the folder, and of making a page.
Result<void> check_profile_output(const std::string& output);

// Reads a file in the format of pprof, of unknown origin: to be called in a process without rights.
// Errors: those of opening it, and of stacks::read_pprof().
// `value`: the name of the quantity that is read; empty: the file's default.
Result<stacks::NamedProfile> read_profile(const std::string& path, const std::string& value);

// The same of a file that is compared with a profile of this quantity. It may also have folded stacks.
// Errors: also those of stacks::read_folded().
Result<stacks::NamedProfile> read_to_compare(const std::string& path, stacks::Quantity quantity);

// The stacks of one phase of a dump or restore; empty: all.
// Errors: that of `profile`; not_found: it has no such phase.
Result<stacks::NamedProfile> chosen_part(Result<stacks::NamedProfile> profile,
                                         const std::string& phase);

// Adds --value, which names a quantity of a file.
void add_value_option(CLI::App& verb, std::string& value);

// Writes the file and says so. `content`: that of the file or, of a page, its data.
void write_profile(const std::string& output, std::string content, Context& context);

}  // namespace kymo::cli
