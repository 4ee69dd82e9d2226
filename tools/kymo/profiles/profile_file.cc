#include "profiles/profile_file.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "base/file.h"
#include "lens/report/flame_page.h"
#include "lens/report/human.h"
#include "lens/report/page.h"
#include "print.h"

namespace kymo::cli {
namespace {

Result<std::string> bytes_of(const std::string& path) {
  constexpr std::size_t kMaxBytes = std::size_t{512} << 20U;
  const Result<FileDescriptor> file = open_regular(path);
  if (!file) return file.error();
  return read_all(file->get(), path, kMaxBytes);
}

}  // namespace

ProfileFormat profile_format(const std::string& output) {
  const std::pair<const char*, ProfileFormat> formats[] = {{".html", ProfileFormat::page},
                                                           {".pb.gz", ProfileFormat::pprof},
                                                           {".pprof", ProfileFormat::pprof},
                                                           {".folded", ProfileFormat::folded},
                                                           {".txt", ProfileFormat::folded}};
  for (const auto& [ending, format] : formats) {
    if (output.ends_with(ending)) return format;
  }
  return ProfileFormat::none;
}

Result<void> check_profile_output(const std::string& output) {
  if (output.empty()) return {};
  const ProfileFormat format = profile_format(output);
  if (format == ProfileFormat::none) {
    return Error{Code::invalid_argument,
                 output +
                     ": give a file that ends in .html (a flame graph), in .pb.gz or .pprof (for "
                     "pprof), or in .folded or .txt (stacks for other flame graphs)"};
  }
  if (format == ProfileFormat::page) {
    if (const Result<report::Page> page = report::Page::begin({}); !page) return page.error();
  }
  const std::string folder = std::filesystem::path(absolute_path(output)).parent_path();
  if (::access(folder.c_str(), W_OK | X_OK) == 0) return {};
  return system_error("cannot write into " + folder, errno);
}

Result<stacks::NamedProfile> read_profile(const std::string& path, const std::string& value) {
  const Result<std::string> bytes = bytes_of(path);
  if (!bytes) return bytes.error();
  return stacks::read_pprof(*bytes, path, stacks::quantity_named(value));
}

Result<stacks::NamedProfile> read_to_compare(const std::string& path, stacks::Quantity quantity) {
  const Result<std::string> bytes = bytes_of(path);
  if (!bytes) return bytes.error();
  return stacks::is_folded(path) ? stacks::read_folded(*bytes, path, quantity)
                                 : stacks::read_pprof(*bytes, path, quantity);
}

Result<stacks::NamedProfile> chosen_part(Result<stacks::NamedProfile> profile,
                                         const std::string& phase) {
  if (!profile || phase.empty()) return profile;
  const std::vector<std::string> phases = stacks::phases_in(*profile);
  if (std::find(phases.begin(), phases.end(), phase) != phases.end()) {
    return stacks::of_phase(*profile, phase);
  }
  std::string names;
  for (const std::string& name : phases) names += (names.empty() ? "" : ", ") + name;
  return Error{Code::not_found,
               "--phase " + phase + ": " +
                   (names.empty() ? "the profile is not divided into phases: only those of dumps "
                                    "and restores are (kymod --profiling-stacks)"
                                  : "it has no samples; these phases have: " + names)};
}

void add_value_option(CLI::App& verb, std::string& value) {
  verb.add_option("--value", value,
                  "If a file has more than one kind of value: show this one, such as alloc of Go's "
                  "heap profile (default: as the file says)")
      ->check(CLI::IsMember(stacks::quantity_names()));
}

void write_profile(const std::string& output, std::string content, Context& context) {
  const Result<std::string> file = profile_format(output) == ProfileFormat::page
                                       ? report::flame_page(content)
                                       : std::move(content);
  if (!file) return fail(context, file.error());
  if (const Result<void> written = replace_file(output, *file); !written) {
    return fail(context, written.error());
  }
  if (!context.quiet) {
    std::fprintf(stderr, "written to %s\n", report::printable(output).c_str());
  }
}

}  // namespace kymo::cli
