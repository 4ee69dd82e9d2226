#include "browser.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "base/file.h"
#include "base/reap.h"
#include "base/spawn.h"

namespace kymo::cli {
namespace {

constexpr const char* kYourself = ": open the address yourself";

// The folder of the file that leads to the link. Only its owner can use it.
Result<std::string> make_redirect_folder() {
  const auto value = [](const char* name) -> std::string {
    const char* const text = std::getenv(name);
    return text != nullptr ? text : "";
  };
  std::string folder = value("XDG_RUNTIME_DIR");
  if (folder.empty() && !value("HOME").empty()) folder = value("HOME") + "/.cache";
  if (folder.empty() || folder.front() != '/') {
    return Error{Code::not_found,
                 std::string("open a browser: there is no folder for the file that sends it to the "
                             "page (XDG_RUNTIME_DIR and HOME are not set)") +
                     kYourself};
  }
  make_folders(folder);
  folder += "/kymograph";
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    Error error = system_error("open a browser: make the folder " + folder, errno);
    error.message += kYourself;
    return error;
  }
  struct stat info {};
  const bool ours = lstat(folder.c_str(), &info) == 0 && S_ISDIR(info.st_mode) &&
                    info.st_uid == geteuid() && (info.st_mode & 077U) == 0;
  if (ours) return folder;
  return Error{Code::permission_denied,
               "open a browser: " + folder +
                   " must be a folder of yours with mode 0700: remove it, or change its mode"};
}

std::string redirect_page(const std::string& url) {
  std::string escaped;
  for (const char c : url) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      default:
        escaped += c;
    }
  }
  return "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Kymograph</title>"
         "<meta name=\"referrer\" content=\"no-referrer\">"
         "<meta http-equiv=\"refresh\" content=\"0; url=" +
         escaped + "\"><p><a href=\"" + escaped + "\">Kymograph</a></p></html>\n";
}

// The file always has the same name, so that files do not accumulate. Its link is invalid after a
// minute.
Result<std::string> write_redirect(const std::string& url) {
  Result<std::string> folder = make_redirect_folder();
  if (!folder) return folder;
  std::string path = *folder + "/open.html";
  const Result<FileDescriptor> file = create_anew(path, 0600);
  std::size_t written = 0;
  const int cause =
      file ? write_all(file->get(), redirect_page(url), &written) : file.error().errno_value;
  if (cause == 0) return path;
  Error error = system_error("open a browser: write " + path, cause);
  error.message += kYourself;
  return error;
}

std::string file_url(const std::string& path) {
  constexpr std::string_view kPlain = "/-._~";
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string url = "file://";
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80 && (std::isalnum(byte) != 0 || kPlain.find(c) != std::string_view::npos)) {
      url += c;
    } else {
      url += '%';
      url += kDigits[byte >> 4U];
      url += kDigits[byte & 15U];
    }
  }
  return url;
}

}  // namespace

Result<void> open_in_browser(const std::string& url_once) {
  if (url_once.empty()) {
    return Error{
        Code::unimplemented,
        std::string("open a browser: kymod sent no link for one use (it is too old)") + kYourself};
  }
  const Result<std::string> path = write_redirect(url_once);
  if (!path) return path.error();
  const char* named = std::getenv("BROWSER");
  const std::string program = named != nullptr && *named != '\0' ? named : "xdg-open";
  const Result<pid_t> pid = spawn({.file = program, .words = {program, file_url(*path)}});
  if (!pid) {
    return Error{Code::not_found,
                 "open the page with " + program +
                     ": the program cannot be started: open the address yourself, or name a "
                     "program with BROWSER",
                 pid.error().errno_value};
  }
  const int status = reap(*pid);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  return Error{Code::unknown, "open the page with " + program + ": the program " +
                                  how_it_ended(status) +
                                  ": open the address yourself, or name a program with BROWSER"};
}

}  // namespace kymo::cli
