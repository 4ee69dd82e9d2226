#include "checkpoint/criu/images/pstree.h"

#include <limits>

#include "checkpoint/criu/images/images.h"
#include "checkpoint/criu/images/images.pb.h"

namespace kymo::criu {
namespace {

bool is_pid(std::uint32_t value) {
  return value > 0 && value <= static_cast<std::uint32_t>(std::numeric_limits<pid_t>::max());
}

}  // namespace

Result<std::vector<ImageProcess>> parse_pstree(std::span<const std::byte> image,
                                               std::string_view name) {
  const auto messages = image_messages(image, kPstreeImage, name);
  if (!messages) {
    return messages.error();
  }
  std::vector<ImageProcess> processes;
  for (const std::span<const std::byte> message : *messages) {
    const auto offset = std::to_string(message.data() - image.data());
    wire::PstreeEntry entry;
    if (!parse_message(message, entry) || !is_pid(entry.pid())) {
      return Error{Code::invalid_argument, "cannot read " + std::string(name) +
                                               ": the message at byte " + offset +
                                               " is not a process of CRIU's"};
    }
    ImageProcess process{static_cast<pid_t>(entry.pid()),
                         static_cast<pid_t>(entry.ppid()),
                         static_cast<pid_t>(entry.pgid()),
                         static_cast<pid_t>(entry.sid()),
                         {}};
    for (const std::uint32_t thread : entry.threads()) {
      if (is_pid(thread)) {
        process.threads.push_back(static_cast<pid_t>(thread));
      }
    }
    processes.push_back(std::move(process));
  }
  if (processes.empty()) {
    return Error{Code::data_loss, "cannot read " + std::string(name) + ": it holds no process"};
  }
  return processes;
}

Result<std::vector<ImageProcess>> read_pstree(const std::string& path) {
  const auto bytes = read_image(path);
  return bytes ? parse_pstree(*bytes, path) : Result<std::vector<ImageProcess>>(bytes.error());
}

}  // namespace kymo::criu
