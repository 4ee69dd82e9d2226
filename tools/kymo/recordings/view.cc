#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <vector>

#include "kymo/result.h"
#include "print.h"
#include "verbs.h"

namespace kymo::cli {
namespace {

// Executes the program kymo-view from the folder of this program. Returns only if this fails.
void become_view(Context& context, std::vector<std::string> words) {
  std::error_code unknown;
  const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe", unknown);
  const std::string program = own.parent_path() / "kymo-view";
  words.insert(words.begin(), "kymo view");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execv(program.c_str(), arguments.data());
  const int cause = errno;
  Error error = system_error("start " + program, cause);
  if (cause == ENOENT) error.message += ": install it in the same folder as kymo";
  fail(context, error);
}

}  // namespace

void add_view(CLI::App& app, Context& context) {
  CLI::App* view =
      app.add_subcommand("view", "Show a recording of any length in a browser on this machine");
  // kymo-view reads all arguments itself, also --help.
  view->fallthrough(false);
  view->set_help_flag();
  view->prefix_command();
  view->callback([&context, view] { become_view(context, view->remaining()); });
}

}  // namespace kymo::cli
