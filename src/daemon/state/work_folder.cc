#include "daemon/state/work_folder.h"

#include <filesystem>
#include <system_error>
#include <vector>

namespace kymo::daemon {
namespace {

namespace fs = std::filesystem;

// Gives the file a copy of its own if it has other names, perhaps outside of the checkpoint.
std::error_code part_from_other_names(const fs::directory_entry& file) {
  std::error_code error;
  if (!file.is_regular_file(error) || file.hard_link_count(error) < 2 || error) return error;
  const fs::path copy = file.path().string() + ".copy";
  fs::remove(copy, error);
  if (!error) fs::copy_file(file.path(), copy, error);
  if (!error) fs::rename(copy, file.path(), error);
  return error;
}

}  // namespace

Result<void> prepare_work_folder(const std::string& tried, const std::string& folder) {
  std::error_code error;
  std::vector<fs::directory_entry> entries;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    entries.push_back(*it);
  }
  for (const fs::directory_entry& entry : entries) {
    std::error_code failed;
    if (entry.is_symlink(failed)) {
      return Error{Code::permission_denied, tried + ": " + entry.path().string() +
                                                " is a link, which could lead anywhere: remove it"};
    }
    if (failed = part_from_other_names(entry); failed) {
      return system_error(
          tried + ": copy " + entry.path().string() + ", which has another name elsewhere",
          failed.value());
    }
  }
  if (error) return system_error(tried + ": look into " + folder, error.value());
  return {};
}

}  // namespace kymo::daemon
