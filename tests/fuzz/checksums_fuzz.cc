#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"
#include "checkpoint/criu/images/faults.h"
#include "checkpoint/criu/images/image_list.h"
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
  const std::string text = text_of(data);
  require(replace_file(kFolder.path() + "/checksums.xxh128", text).ok(), "it can be written");
  std::vector<std::string> faults;
  const auto list = criu::read_checksums_file(kFolder.path(), faults);
  const auto compared =
      list ? criu::compare_images(kFolder.path(), *list, criu::Sums::all) : list.error();
  if (!compared) {
    require(!compared.error().message.empty(), "an error says something");
    return;
  }
  require(compared->files <= 3, "nothing but the folder's own files is read");
  for (const std::vector<std::string>& all : {faults, compared->faults}) {
    for (const std::string& fault : all) {
      require(!fault.empty() && fault.find('\n') == std::string::npos, "a fault is a line");
    }
    require(all.size() <= criu::kMaxFaults + 1, "the list of faults is bounded");
  }
}

}  // namespace kymo::fuzz
