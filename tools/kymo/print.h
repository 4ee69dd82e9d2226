#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "kymo/result.h"
#include "verbs.h"

namespace kymo::cli {

// Prints one line on stderr, "kymo: TEXT". The text is made printable.
void say(const std::string& text);
// Prints the error on stderr and sets the exit code to 1.
void fail(Context& context, const Error& error);

void print_json(const nlohmann::json& json);
// Prints a table. The text of all cells is made printable. On a terminal that is too narrow, the cells of the column
// `gives_way` are shortened.
void print_table(std::vector<std::vector<std::string>> rows,
                 std::optional<std::size_t> gives_way = {});
// The characters that fit into a line of this terminal. Nothing: it is none, or does not tell.
std::optional<std::size_t> width_of_terminal(int descriptor);

// "512 MiB (536,870,912 bytes)"
std::string bytes_text(std::uint64_t bytes);
// "2026-11-21 08:33:05", in local time.
std::string local_time(std::int64_t unix_ns);

// The path in kymod's form: absolute, without `..` and without a trailing slash.
std::string absolute_path(const std::string& path);

}  // namespace kymo::cli
