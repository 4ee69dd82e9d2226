#include "profiler/stacks/symbols.h"

#include <unistd.h>

#include <string_view>
#include <utility>

#include "base/file.h"
#include "profiler/stacks/elf_file.h"
#include "profiler/stacks/symbol_table.h"

namespace kymo::stacks {
namespace {

constexpr std::size_t kMaxMapBytes = std::size_t{256} << 20U;

// All of a file of text that is open; empty if it cannot be read or is too long.
std::string text_of(const Module& module) {
  if (!module.file.valid() || ::lseek(module.file.get(), 0, SEEK_SET) != 0) return {};
  Result<std::string> text = read_all(module.file.get(), module.path, kMaxMapBytes);
  return text ? *std::move(text) : std::string();
}

// Debian and others install the debugging information of a package by its build id.
FileDescriptor open_debug_file(const std::string& build_id) {
  if (build_id.size() < 3) return {};
  const std::string path =
      "/usr/lib/debug/.build-id/" + build_id.substr(0, 2) + "/" + build_id.substr(2) + ".debug";
  Result<FileDescriptor> file = open_regular(path);
  return file ? *std::move(file) : FileDescriptor();
}

std::string_view last_part(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

}  // namespace

// The names of one module.
struct Symbols::Names {
  using Detail = NamingPlan::Detail;

  Names(const Module& module, Detail detail) {
    if (detail == Detail::nothing) return;
    if (module.kind == Module::Kind::file || module.kind == Module::Kind::vdso) {
      elf = module.kind == Module::Kind::vdso ? ElfFile::vdso() : ElfFile::open(module.file);
      if (elf != nullptr) read_elf(detail == Detail::all);
    } else if (module.kind == Module::Kind::jit) {
      text = text_of(module);
      table.add_perf_map(text);
    } else if (module.kind == Module::Kind::kernel) {
      text = text_of(module);
      table.add_kallsyms(text);
    }
    table.sort();
  }

  void read_elf(bool debug_info) {
    table.add_elf(elf->elf());
    if (debug_info) info = DebugInfo::open(elf->elf());
    if (info != nullptr) return;
    debug_file = open_debug_file(elf->build_id());
    debug_elf = ElfFile::open(debug_file);
    if (debug_elf == nullptr) return;
    table.add_elf(debug_elf->elf());
    if (debug_info) info = DebugInfo::open(debug_elf->elf());
  }

  std::string text;  // what the names of the table are parts of
  FileDescriptor debug_file;
  std::unique_ptr<ElfFile> elf;
  std::unique_ptr<ElfFile> debug_elf;
  SymbolTable table;
  std::unique_ptr<DebugInfo> info;  // uses an ELF file above
};

Symbols::Symbols(NamingPlan* plan) : plan_(plan) {}
Symbols::~Symbols() = default;

Symbols::Names& Symbols::names_of(const Module& module) {
  std::unique_ptr<Names>& names = names_[&module];
  if (names == nullptr) {
    names = std::make_unique<Names>(module,
                                    plan_ == nullptr ? NamingPlan::Detail::all : plan_->of(module));
  }
  return *names;
}

const Location& Symbols::at(const Frame& frame) {
  const auto found = found_.find(frame);
  return found != found_.end() ? found->second : found_.emplace(frame, find(frame)).first->second;
}

Location Symbols::find(const Frame& frame) {
  Location location;
  if (frame.module == nullptr) {
    location.module = "[unknown]";
    location.lines.push_back({location.module, {}, 0});
    return location;
  }
  location.module = frame.module->path;
  if (plan_ != nullptr) plan_->reads(frame.module);
  Names& names = names_of(*frame.module);
  if (names.info != nullptr) location.lines = names.info->lines_at(frame.address);
  if (plan_ != nullptr) plan_->reads(nullptr);
  const std::string_view symbol = names.table.find(frame.address);
  location.known = !symbol.empty() || !location.lines.empty();
  if (location.lines.empty()) location.lines.emplace_back();
  // The linker's name of the function that was compiled tells more: debugging information has the
  // names of C++ functions without parameters in some places.
  if (!symbol.empty()) location.lines.back().function = demangled(std::string(symbol).c_str());
  if (!location.known) {
    const std::string_view name = last_part(location.module);
    location.lines.back().function =
        name.starts_with('[') ? std::string(name) : "[" + std::string(name) + "]";
  }
  return location;
}

std::string Symbols::build_id(const Module& module) {
  const Names& names = names_of(module);
  return names.elf == nullptr ? std::string() : names.elf->build_id();
}

}  // namespace kymo::stacks
