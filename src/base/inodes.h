#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kymo {

// The number of free inodes on the disk of `path`, which need not exist, if they are so few that a
// file could not be made (ENOSPC) because of that, and not because the space is used up. Nothing:
// there are enough, or the file system makes them as they are needed, or it does not say.
// Threads: any; blocks for as long as the disk does.
std::optional<std::uint64_t> few_free_inodes(const std::string& path);

// A clause for the message of an error: that so few are left, and what to do.
std::string advice_on_few_inodes(std::uint64_t free);
// Whether a message has such a clause. What the dump had made is removed before the error is seen, so the disk cannot
// be asked again.
bool has_advice_on_inodes(std::string_view message);

}  // namespace kymo
