#include <unistd.h>

#include <filesystem>
#include <string>

#include "base/file.h"
#include "criu/checksums.h"
#include "criu/faults.h"
#include "targets.h"

namespace kymo::fuzz {
namespace {

// A folder with two images and the list of their checksums.
class ListedFolder {
 public:
  ListedFolder()
      : path_(std::filesystem::temp_directory_path() / ("kymo-fuzz-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(path_ + "/pre-1");
    require(replace_file(path_ + "/inventory.img", "inventory").ok() &&
                replace_file(path_ + "/pre-1/pages-1.img", "pages").ok(),
            "the folder can be written to");
  }
  ~ListedFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ListedFolder(const ListedFolder&) = delete;
  ListedFolder& operator=(const ListedFolder&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

void checksums(Bytes data) {
  static const ListedFolder kFolder;
  const std::string list = text_of(data);
  require(replace_file(kFolder.path() + "/" + criu::kChecksumsFile, list).ok(),
          "it can be written");
  const auto compared = criu::compare_checksums(kFolder.path());
  if (!compared) {
    require(!compared.error().message.empty(), "an error says something");
    return;
  }
  require(compared->files <= 2, "nothing but the folder's own files is read");
  for (const std::string& fault : compared->faults) {
    require(!fault.empty() && fault.find('\n') == std::string::npos, "a fault is a line");
  }
  require(compared->faults.size() <= criu::kMaxFaults + 1, "the list of faults is bounded");
}

}  // namespace kymo::fuzz
