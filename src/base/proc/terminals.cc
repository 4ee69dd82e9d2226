#include "base/proc/terminals.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>
#include <sstream>
#include <string_view>

#include "base/file.h"

namespace kymo::probe {
namespace {

// From Documentation/admin-guide/devices.txt of the kernel.
constexpr unsigned kAuxiliaryMajor = 5;
constexpr unsigned kOwnTerminalMinor = 0;  // /dev/tty
constexpr unsigned kMasterMinor = 2;       // /dev/ptmx
constexpr unsigned kFirstSlaveMajor = 136;
constexpr unsigned kLastSlaveMajor = 143;

// This descriptor is the other end of the terminal /dev/pts/N. Returns N, or -1 if fdinfo does not
// say it.
int terminal_made_by(const std::string& fdinfo) {
  constexpr std::string_view kKey = "tty-index:";
  const Result<std::string> text = read_file(fdinfo);
  const std::size_t at = text ? text->find(kKey) : std::string::npos;
  if (at == std::string::npos) return -1;
  const std::size_t digits = text->find_first_not_of(" \t", at + kKey.size());
  if (digits == std::string::npos) return -1;
  int number = -1;
  std::from_chars(text->data() + digits, text->data() + text->size(), number);
  return number;
}

struct Slave {
  OpenTerminal terminal;
  int number = -1;   // -1: /dev/tty
  std::string name;  // in the words of CRIU's --external
};

std::string name_of(const struct stat& terminal) {
  std::ostringstream name;
  name << std::hex << "tty[" << terminal.st_rdev << ':' << terminal.st_dev << ']';
  return name.str();
}

void look_at(pid_t pid, const std::string& root, std::vector<Slave>& slaves, std::set<int>& made) {
  const std::string folder = root + "/" + std::to_string(pid);
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder + "/fd", error), end;
       !error && entry != end; entry.increment(error)) {
    struct stat info {};
    if (stat(entry->path().c_str(), &info) != 0 || !S_ISCHR(info.st_mode)) continue;
    const unsigned major_number = major(info.st_rdev);
    const unsigned minor_number = minor(info.st_rdev);
    std::error_code unknown;
    const std::string path = std::filesystem::read_symlink(entry->path(), unknown);
    if (major_number >= kFirstSlaveMajor && major_number <= kLastSlaveMajor) {
      const auto number = static_cast<int>((major_number - kFirstSlaveMajor) * 256 + minor_number);
      slaves.push_back({{pid, path}, number, name_of(info)});
    } else if (major_number == kAuxiliaryMajor && minor_number == kOwnTerminalMinor) {
      slaves.push_back({{pid, path}, -1, name_of(info)});
    } else if (major_number == kAuxiliaryMajor && minor_number == kMasterMinor) {
      made.insert(terminal_made_by(folder + "/fdinfo/" + entry->path().filename().string()));
    }
  }
}

}  // namespace

std::optional<OpenTerminal> outside_terminal(const std::vector<pid_t>& processes,
                                             const std::vector<std::string>& external,
                                             const std::string& root) {
  std::vector<Slave> slaves;
  std::set<int> made;
  for (const pid_t pid : processes) look_at(pid, root, slaves, made);
  for (const Slave& slave : slaves) {
    // The terminal behind /dev/tty is unknown. If the processes made a terminal, assume that one.
    const bool inside = slave.number < 0 ? !made.empty() : made.contains(slave.number);
    const bool named = std::find(external.begin(), external.end(), slave.name) != external.end();
    if (!inside && !named) return slave.terminal;
  }
  return std::nullopt;
}

}  // namespace kymo::probe
