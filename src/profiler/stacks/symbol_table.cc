#include "profiler/stacks/symbol_table.h"

#include <gelf.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>
#include <tuple>

namespace kymo::stacks {
namespace {

constexpr std::size_t kMaxSymbols = 20'000'000;
constexpr std::uint64_t kLast = std::numeric_limits<std::uint64_t>::max();

// Takes a word from the beginning of the line.
std::string_view take_word(std::string_view& line) {
  const std::size_t end = std::min(line.find_first_of(" \t"), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(std::min(line.find_first_not_of(" \t", end), line.size()));
  return word;
}

bool parse_hex(std::string_view word, std::uint64_t& value) {
  if (word.starts_with("0x")) word.remove_prefix(2);
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value, 16);
  return error == std::errc() && end == word.data() + word.size();
}

template <class Take>
void for_each_line(std::string_view text, Take take) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    take(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

constexpr unsigned char kPltRank = 16;  // after all functions

// A library has aliases of its functions, such as write, __write and __GI___write.
unsigned char rank_of(unsigned char binding, std::string_view name) {
  const unsigned local = binding == STB_LOCAL ? 8 : 0;
  return static_cast<unsigned char>(local + std::min<std::size_t>(name.find_first_not_of('_'), 7));
}

}  // namespace

void SymbolTable::add_elf(Elf* elf) {
  Elf_Scn* section = nullptr;
  while ((section = elf_nextscn(elf, section)) != nullptr) {
    add_section(elf, section);
    add_plt(elf, section);
  }
}

// The calls of functions of other modules go through code that has no symbol.
void SymbolTable::add_plt(Elf* elf, Elf_Scn* section) {
  GElf_Shdr header{};
  std::size_t names = 0;
  if (gelf_getshdr(section, &header) == nullptr || elf_getshdrstrndx(elf, &names) != 0) return;
  const char* const name = elf_strptr(elf, names, header.sh_name);
  if (name == nullptr || !std::string_view(name).starts_with(".plt") || header.sh_size == 0) return;
  symbols_.push_back({header.sh_addr, header.sh_addr + header.sh_size, kPltRank, name});
}

void SymbolTable::add_section(Elf* elf, Elf_Scn* section) {
  GElf_Shdr header{};
  if (gelf_getshdr(section, &header) == nullptr || header.sh_entsize == 0 ||
      (header.sh_type != SHT_SYMTAB && header.sh_type != SHT_DYNSYM)) {
    return;
  }
  Elf_Data* const data = elf_getdata(section, nullptr);
  if (data == nullptr) return;
  const std::size_t count = std::min(data->d_size / header.sh_entsize, kMaxSymbols);
  for (std::size_t i = 0; i < count; ++i) {
    GElf_Sym symbol{};
    if (gelf_getsym(data, static_cast<int>(i), &symbol) == nullptr) return;
    const unsigned char type = GELF_ST_TYPE(symbol.st_info);
    if ((type != STT_FUNC && type != STT_GNU_IFUNC) || symbol.st_shndx == SHN_UNDEF) continue;
    const char* const name = elf_strptr(elf, header.sh_link, symbol.st_name);
    if (name == nullptr || *name == '\0') continue;
    symbols_.push_back({symbol.st_value, symbol.st_value + symbol.st_size,
                        rank_of(GELF_ST_BIND(symbol.st_info), name), name});
  }
}

void SymbolTable::add_perf_map(std::string_view text) {
  for_each_line(text, [this](std::string_view line) {
    std::uint64_t begin = 0;
    std::uint64_t size = 0;
    const std::string_view first = take_word(line);
    const std::string_view second = take_word(line);
    if (parse_hex(first, begin) && parse_hex(second, size) && size <= kLast - begin &&
        !line.empty() && symbols_.size() < kMaxSymbols) {
      symbols_.push_back({begin, begin + size, 0, line});
    }
  });
}

void SymbolTable::add_kallsyms(std::string_view text) {
  for_each_line(text, [this](std::string_view line) {
    std::uint64_t begin = 0;
    const std::string_view address = take_word(line);
    const std::string_view type = take_word(line);
    if (type.find_first_of("tTwW") == std::string_view::npos) return;
    if (parse_hex(address, begin) && begin != 0) {
      symbols_.push_back({begin, begin, 0, take_word(line)});
    }
  });
}

void SymbolTable::sort() {
  std::stable_sort(symbols_.begin(), symbols_.end(), [](const Symbol& a, const Symbol& b) {
    return std::tie(a.begin, a.rank) < std::tie(b.begin, b.rank);
  });
  const auto same = [](const Symbol& a, const Symbol& b) { return a.begin == b.begin; };
  symbols_.erase(std::unique(symbols_.begin(), symbols_.end(), same), symbols_.end());
  for (std::size_t i = 0; i < symbols_.size(); ++i) {
    Symbol& symbol = symbols_[i];
    if (symbol.end == symbol.begin) {
      symbol.end = i + 1 < symbols_.size() ? symbols_[i + 1].begin : kLast;
    }
  }
}

// A function can contain another one, so that the last one that begins before is not always it.
std::string_view SymbolTable::find(std::uint64_t address) const {
  constexpr int kNested = 8;
  auto at = std::upper_bound(
      symbols_.begin(), symbols_.end(), address,
      [](std::uint64_t value, const Symbol& symbol) { return value < symbol.begin; });
  for (int i = 0; i < kNested && at != symbols_.begin(); ++i) {
    --at;
    if (address < at->end) return at->name;
  }
  return {};
}

}  // namespace kymo::stacks
