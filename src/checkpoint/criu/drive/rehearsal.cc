#include "checkpoint/criu/drive/rehearsal.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "base/pipe.h"
#include "checkpoint/criu/drive/child.h"
#include "checkpoint/criu/drive/command.h"
#include "checkpoint/criu/drive/image_streamer.h"
#include "checkpoint/criu/drive/log.h"
#include "checkpoint/criu/drive/scratch_folder.h"
#include "checkpoint/criu/images/images.h"

namespace kymo::criu {
namespace {

constexpr char kRehearsalLog[] = "rehearsal.log";
// CRIU takes back what it has restored within this time; else it is killed.
constexpr std::chrono::milliseconds kToGiveUp{500};

// Runs as `sh -c kStage NAME FOLDER SAID COVERED LAYERS... -- COMMAND...`, the first process of its pid namespace. A folder
// is covered by one that reads from its layers and writes to memory.
constexpr char kStage[] = R"(set -e
echo 1000 >/proc/self/oom_score_adj  # if memory runs out, nobody else ends for it
ip link set lo up
ip route add local default dev lo
ip -6 route add local default dev lo 2>/dev/null || :
for family in ipv4 ipv6; do
  switch=/proc/sys/net/$family/ip_nonlocal_bind
  test ! -e $switch || echo 1 >$switch
done
folder=$1 said=$2
shift 2
mount -t tmpfs kymo "$folder"
number=0
while test "$1" != --; do
  number=$((number + 1))
  mkdir -p "$folder/$number/upper" "$folder/$number/work"
  cd "$1"
  for copy in chown chmod; do $copy --reference "${2%%:*}" "$folder/$number/upper"; done
  mount -t overlay kymo -o "lowerdir=$2,upperdir=$folder/$number/upper,workdir=$folder/$number/work" "$1"
  shift 2
done
cd /
umount -l "$folder"
mount -t tmpfs kymo "$folder"  # once more: one of the folders may cover it
cat >"$folder/stop" <<END
#!/bin/sh
test "\$CRTOOLS_SCRIPT_ACTION" != post-restore || { echo >"$said"; exit 1; }
END
chmod 755 "$folder/stop"
echo "action-script $folder/stop" >"$folder/criu.conf"
shift
exec "$@"
)";

// The descriptors that CRIU inherits, in this order, after those of the request.
enum Inherited : std::uint8_t { images, work, said };

// CRIU is the first process of its pid namespace. Its descriptors lead to the folders, whatever is
// mounted over their paths.
std::string inherited_path(const ClientOptions& options, Inherited what) {
  const int first = kFirstInherited + static_cast<int>(options.inherited.size());
  return "/proc/1/fd/" + std::to_string(first + what);
}

// Whether the script has said that CRIU came to the moment before anything runs.
bool came_to_the_end(const Pipe& pipe) {
  char byte = 0;
  fcntl(pipe.from.get(), F_SETFL, O_NONBLOCK);
  return ::read(pipe.from.get(), &byte, 1) == 1;
}

std::vector<std::string> criu_words(const ClientOptions& with, const RehearsalRequest& request,
                                    const Stage& stage, bool stream) {
  std::vector<std::string> words{with.path, "restore"};
  if (stream) words.emplace_back("--stream");
  words.insert(words.end(), {"--images-dir", inherited_path(with, stream ? work : images),
                             "--work-dir", inherited_path(with, work), "--log-file", kRehearsalLog,
                             "-v" + std::to_string(kRestoreLogLevel), "--file-locks",
                             "--action-script", stage.script()});
  Options options = request.options;
  options.cgroups = Cgroups::ignore;
  for (std::string& word : arguments_of(options)) words.push_back(std::move(word));
  return words;
}

// `said`: the last line of the programs' own words.
Error failed(const std::string& tried, const std::string& log, const Error& error,
             const std::string& words) {
  if (error.code == Code::cancelled || error.code == Code::deadline_exceeded) {
    return {error.code, tried + ": " + error.message};
  }
  const std::string cause = cause_in(log);
  if (!cause.empty()) return {error.code, tried + ": " + cause};
  if (::access(log.c_str(), F_OK) == 0) return {error.code, tried + ": " + error.message};
  return {Code::failed_precondition,
          tried + " in namespaces of its own, which could not be made: " + words};
}

}  // namespace

std::vector<std::string> Stage::words(const std::vector<std::string>& command) const {
  // It ends with the thread that starts it, and so with this program.
  std::vector<std::string> words{
      "setpriv",       "--pdeathsig",    "KILL",  "--",      "unshare",
      "--propagation", "slave",          "--pid", "--fork",  "--kill-child",
      "--net",         "--mount-proc",   "--",    "/bin/sh", "-c",
      kStage,          "kymo-rehearsal", folder,  said};
  for (const Covered& one : covered) words.insert(words.end(), {one.folder, one.layers});
  words.emplace_back("--");
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

Result<void> rehearse(const ClientOptions& options, const RehearsalRequest& request) {
  const std::string tried = "criu could not restore " + request.images_dir;
  const Result<ScratchFolder> folder = ScratchFolder::create("kymo-rehearsal");
  if (!folder) return folder.error();
  Result<FileDescriptor> images_folder = open_folder(tried, request.images_dir);
  if (!images_folder) return images_folder.error();
  Result<FileDescriptor> work_folder = open_folder(tried, request.work_dir);
  if (!work_folder) return work_folder.error();
  Result<Pipe> pipe = make_pipe();
  if (!pipe) return pipe.error();
  const std::string log = request.work_dir + "/" + kRehearsalLog;
  ::unlink(log.c_str());
  const std::string inventory = request.images_dir + "/inventory.img";
  std::unique_ptr<ImageStreamer> streamer;
  if (stored_path(inventory) != inventory) {  // CRIU itself cannot read them
    auto serving = ImageStreamer::serve(request.images_dir, request.work_dir, nullptr);
    if (!serving) return serving.error();
    streamer = *std::move(serving);
  }
  Stage stage{folder->path(), {}, inherited_path(options, said)};
  for (const std::string& changed : request.changed) stage.covered.push_back({changed});
  std::vector<std::string> words =
      stage.words(criu_words(options, request, stage, streamer != nullptr));
  const std::string program = words.front();
  words.erase(words.begin());
  std::vector<int> inherited = options.inherited;
  inherited.insert(inherited.end(), {images_folder->get(), work_folder->get(), pipe->to.get()});
  Result<std::unique_ptr<Child>> child =
      Child::start(program, std::move(words), options.timeout, options.cancel, inherited);
  if (!child) return child.error();
  (*child)->may_lose_processes();
  const Result<bool> ended = (*child)->wait_for(pipe->from.get());
  const Result<void> end = ended ? (*child)->check_end() : Result<void>(ended.error());
  const Result<Streamed> streamed = streamer ? streamer->finish(kToGiveUp) : Streamed();
  if (came_to_the_end(*pipe)) return {};
  if (!streamed) return Error{streamed.error().code, tried + ": " + streamed.error().message};
  return failed(tried, log,
                end ? Error{Code::internal, "CRIU ended before it was stopped"} : end.error(),
                (*child)->said());
}

}  // namespace kymo::criu
