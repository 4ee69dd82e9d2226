#include <string_view>

#include "checkpoint/criu/images/image_set.h"
#include "checkpoint/criu/images/images.h"
#include "input_file.h"
#include "targets.h"

namespace kymo::fuzz {

void archive(Bytes data) {
  static InputFile file;
  file.write(text_of(data));
  const auto set = criu::ImageSet::open(file.path());
  if (!set) {
    require(!set.error().message.empty(), "an error says something");
    require(set.error().message.find('\n') == std::string::npos, "an error is one line");
    return;
  }
  for (const std::string& name : set->names()) {
    require(!name.empty() && name.find('/') == std::string::npos && name != "..",
            "a name is that of a file and leads nowhere else");
    const auto bytes = set->read(name);
    require(bytes.ok() ? bytes->size() <= criu::kMaxImage : !bytes.error().message.empty(),
            "what is kept is bounded, or an error says something");
    require(set->has(name), "what is named is there");
  }
  for (const std::string& line : set->left_out()) {
    require(!line.empty() && line.find('\n') == std::string::npos, "what is left out is a line");
  }
}

}  // namespace kymo::fuzz
