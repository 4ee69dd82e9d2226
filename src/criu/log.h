#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace kymo::criu {

// The last errors of a CRIU log in one line, oldest first, without timestamps and without those
// that every log has; empty when there are none or the log cannot be read. Reads the log's last 256
// KiB.
std::string last_errors(const std::string& log_path);

// Whether an error explains nothing, since every run says it, or every failure.
bool is_noise(std::string_view line);

// Whether CRIU was executing code of its own in the place of a process's when it wrote the last of
// a dump's log. It is while it has its parasite take up listening, and while it takes it out again:
// a process whose CRIU is killed then ends by SIGTRAP. And it is while the parasite carries out a
// command: it would answer into a closed socket and the process end by SIGPIPE. While the parasite
// listens it notices that CRIU is gone, and gives the process back. Each lasts a millisecond at
// most. False where the log cannot be read.
bool borrows_a_process(const std::string& log_path);
// How long whoever wants to kill CRIU waits for the end of it.
inline constexpr std::chrono::milliseconds kMostBorrowing{2000};

}  // namespace kymo::criu
