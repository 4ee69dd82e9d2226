#include "checkpoint/criu/drive/stats.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/human.h"
#include "base/rate.h"
#include "checkpoint/criu/images/images.h"
#include "checkpoint/criu/images/images.pb.h"
#include "checkpoint/criu/images/memory.h"

namespace kymo::criu {
namespace {

Error unreadable(std::string_view name, const std::string& why, Code code) {
  return Error{code, "cannot read " + std::string(name) + ": " + why};
}

// The one message of a statistics image.
Result<wire::StatsEntry> parse_entry(std::span<const std::byte> image, std::string_view name) {
  const auto messages = image_messages(image, kStatsImage, name);
  if (!messages) {
    return messages.error();
  }
  if (messages->empty()) {
    return unreadable(name,
                      "it holds no statistics: it ends at byte " + std::to_string(image.size()),
                      Code::data_loss);
  }
  if (messages->size() > 1) {
    return unreadable(name, "it holds more than one message: it is not a statistics image",
                      Code::invalid_argument);
  }
  const std::span<const std::byte> message = messages->front();
  wire::StatsEntry entry;
  if (!parse_message(message, entry)) {
    const auto offset = static_cast<std::size_t>(message.data() - image.data());
    return unreadable(name,
                      "the message at byte " + std::to_string(offset) + " is not CRIU's statistics",
                      Code::invalid_argument);
  }
  return entry;
}

// The one description of a figure: how tables and the API call it, where it is in our struct, and
// how it is read from CRIU's message.
template <class StatsType, class EntryType>
struct StatsRow {
  using Stats = StatsType;
  using Entry = EntryType;

  const char* name;
  Unit unit;
  const char* help;
  std::optional<std::uint64_t> (*value)(const Stats&);
  void (*read)(const Entry&, Stats&);
  const char* sum_help = nullptr;  // of kymod's counter that sums it; null if there is none
  bool in_podman = false;          // Podman's statistics have it

  constexpr StatsRow summed(const char* help_of_counter) const {
    StatsRow row = *this;
    row.sum_help = help_of_counter;
    return row;
  }
  constexpr StatsRow podman() const {
    StatsRow row = *this;
    row.in_podman = true;
    return row;
  }
};

template <class>
struct ClassOf;
template <class Class, class Member>
struct ClassOf<Member Class::*> {
  using Type = Class;
};
// `Member` of our struct, `Value` the function of CRIU's message that returns it.
template <auto Member, auto Value>
using StatsRowOf =
    StatsRow<typename ClassOf<decltype(Member)>::Type, typename ClassOf<decltype(Value)>::Type>;

// A figure that CRIU always gives.
template <auto Member, auto Value>
constexpr auto always(const char* name, Unit unit, const char* help) {
  using Row = StatsRowOf<Member, Value>;
  return Row{name, unit, help,
             [](const typename Row::Stats& stats) -> std::optional<std::uint64_t> {
               return stats.*Member;
             },
             [](const typename Row::Entry& entry, typename Row::Stats& stats) {
               stats.*Member = (entry.*Value)();
             }};
}

// A figure that CRIU may leave out.
template <auto Member, auto Value, auto Has>
constexpr auto if_given(const char* name, Unit unit, const char* help) {
  using Row = StatsRowOf<Member, Value>;
  Row row = always<Member, Value>(name, unit, help);
  row.read = [](const typename Row::Entry& entry, typename Row::Stats& stats) {
    if ((entry.*Has)()) stats.*Member = (entry.*Value)();
  };
  return row;
}

using DumpEntry = wire::DumpStatsEntry;
using RestoreEntry = wire::RestoreStatsEntry;

// In the order of CRIU's own messages.
constexpr std::array kDumpRows{
    always<&DumpStats::freezing_time_us, &DumpEntry::freezing_time>(
        "freezing_time_us", Unit::microseconds, "until every task stood still")
        .summed("Time that CRIU took to freeze processes")
        .podman(),
    always<&DumpStats::frozen_time_us, &DumpEntry::frozen_time>(
        "frozen_time_us", Unit::microseconds, "that they stood still")
        .summed("Time that processes stood frozen in dumps")
        .podman(),
    always<&DumpStats::memdump_time_us, &DumpEntry::memdump_time>(
        "memdump_time_us", Unit::microseconds, "of it on memory, writing included")
        .summed("Time that CRIU took to drain memory in dumps")
        .podman(),
    always<&DumpStats::memwrite_time_us, &DumpEntry::memwrite_time>(
        "memwrite_time_us", Unit::microseconds, "of it writing pages")
        .summed("Time that CRIU took to write memory into images")
        .podman(),
    always<&DumpStats::pages_scanned, &DumpEntry::pages_scanned>("pages_scanned", Unit::pages,
                                                                 "looked at")
        .summed("Pages that CRIU looked at in dumps")
        .podman(),
    always<&DumpStats::pages_skipped_parent, &DumpEntry::pages_skipped_parent>(
        "pages_skipped_parent", Unit::pages, "left to the parent image")
        .summed("Pages left out of dumps since a parent image has them"),
    always<&DumpStats::pages_written, &DumpEntry::pages_written>("pages_written", Unit::pages,
                                                                 "written")
        .summed("Pages that CRIU wrote into images")
        .podman(),
    if_given<&DumpStats::irmap_resolve_us, &DumpEntry::irmap_resolve,
             &DumpEntry::has_irmap_resolve>("irmap_resolve_us", Unit::microseconds,
                                            "finding inotify's files"),
    if_given<&DumpStats::pages_lazy, &DumpEntry::pages_lazy, &DumpEntry::has_pages_lazy>(
        "pages_lazy", Unit::pages, "that may be fetched after the restore"),
    if_given<&DumpStats::page_pipes, &DumpEntry::page_pipes, &DumpEntry::has_page_pipes>(
        "page_pipes", Unit::count, "pipes that pages went through"),
    if_given<&DumpStats::page_pipe_bufs, &DumpEntry::page_pipe_bufs,
             &DumpEntry::has_page_pipe_bufs>("page_pipe_bufs", Unit::count,
                                             "buffers of those pipes"),
    if_given<&DumpStats::shpages_scanned, &DumpEntry::shpages_scanned,
             &DumpEntry::has_shpages_scanned>("shpages_scanned", Unit::pages,
                                              "of shared memory looked at"),
    if_given<&DumpStats::shpages_skipped_parent, &DumpEntry::shpages_skipped_parent,
             &DumpEntry::has_shpages_skipped_parent>("shpages_skipped_parent", Unit::pages,
                                                     "of shared memory left to the parent image"),
    if_given<&DumpStats::shpages_written, &DumpEntry::shpages_written,
             &DumpEntry::has_shpages_written>("shpages_written", Unit::pages,
                                              "of shared memory written")};

constexpr std::array kRestoreRows{
    always<&RestoreStats::pages_compared, &RestoreEntry::pages_compared>(
        "pages_compared", Unit::pages, "compared with those of a parent process")
        .podman(),
    always<&RestoreStats::pages_skipped_cow, &RestoreEntry::pages_skipped_cow>(
        "pages_skipped_cow", Unit::pages, "shared with it")
        .podman(),
    always<&RestoreStats::forking_time_us, &RestoreEntry::forking_time>(
        "forking_time_us", Unit::microseconds, "making the processes")
        .summed("Time that CRIU took to fork processes in restores")
        .podman(),
    always<&RestoreStats::restore_time_us, &RestoreEntry::restore_time>(
        "restore_time_us", Unit::microseconds, "until all was in place, before the last hooks")
        .summed("Time that CRIU took to restore processes")
        .podman(),
    if_given<&RestoreStats::pages_restored, &RestoreEntry::pages_restored,
             &RestoreEntry::has_pages_restored>("pages_restored", Unit::pages, "put back")
        .summed("Pages that CRIU restored from images")
        .podman()};

template <class Row, std::size_t N>
std::vector<StatsFigure> figures_by(const std::array<Row, N>& rows,
                                    const typename Row::Stats& stats) {
  std::vector<StatsFigure> all;
  for (const Row& row : rows) {
    if (const auto value = row.value(stats)) all.push_back({row.name, row.unit, *value, row.help});
  }
  return all;
}

template <class Row, std::size_t N>
typename Row::Stats stats_by(const std::array<Row, N>& rows, const typename Row::Entry& entry) {
  typename Row::Stats stats;
  for (const Row& row : rows) row.read(entry, stats);
  return stats;
}

}  // namespace

std::vector<StatsFigure> figures(const DumpStats& stats) {
  return figures_by(kDumpRows, stats);
}

std::vector<StatsFigure> figures(const RestoreStats& stats) {
  return figures_by(kRestoreRows, stats);
}

std::vector<SummedFigure> summed_figures() {
  std::vector<SummedFigure> all;
  const auto add = [&all](const auto& rows) {
    for (const auto& row : rows) {
      if (row.sum_help != nullptr) all.push_back({row.name, row.unit, row.sum_help});
    }
  };
  add(kDumpRows);
  add(kRestoreRows);
  std::stable_partition(all.begin(), all.end(),
                        [](const SummedFigure& one) { return one.unit == Unit::pages; });
  return all;
}

bool is_podman_figure(std::string_view name) {
  const auto has = [name](const auto& row) { return row.in_podman && row.name == name; };
  return std::any_of(kDumpRows.begin(), kDumpRows.end(), has) ||
         std::any_of(kRestoreRows.begin(), kRestoreRows.end(), has);
}

std::vector<std::string> known_causes(const DumpStats& stats) {
  constexpr std::uint64_t kFreezerPoll = 100'000;  // us: the poll interval in criu/seize.c
  constexpr std::uint64_t kSlow = 200'000'000;     // bytes a second
  std::vector<std::string> causes;
  if (stats.freezing_time_us >= kFreezerPoll * 9 / 10) {
    causes.push_back("freezing took " + human::duration(stats.freezing_time_us * 1000) +
                     ": with the cgroup freezer, CRIU checks only every 100 ms whether all "
                     "processes have stopped");
  }
  if (stats.memwrite_time_us > kFreezerPoll) {
    const auto bytes_a_second = static_cast<std::uint64_t>(
        rate_per_second(static_cast<double>(stats.pages_written * kPageBytes),
                        std::uint64_t{stats.memwrite_time_us} * 1000));
    if (bytes_a_second < kSlow) {
      causes.push_back("memory was written at " + std::to_string(bytes_a_second / 1'000'000) +
                       " MB/s: the disk, compression or a lack of CPU time held it up (kymo "
                       "explain says which, if kymod made the dump)");
    }
  }
  return causes;
}

std::optional<std::uint64_t> unwrapped_us(std::uint32_t time_us, std::uint64_t span_us) {
  constexpr std::uint64_t kWrap = std::uint64_t{1} << 32U;
  if (span_us < kWrap + time_us) {
    return {};
  }
  return time_us + (span_us - time_us) / kWrap * kWrap;
}

Result<DumpStats> parse_dump_stats(std::span<const std::byte> image, std::string_view name) {
  const Result<wire::StatsEntry> entry = parse_entry(image, name);
  if (!entry) {
    return entry.error();
  }
  if (!entry->has_dump()) {
    return unreadable(name,
                      "it holds no statistics of a dump (those of a restore: read stats-dump)",
                      Code::invalid_argument);
  }
  return stats_by(kDumpRows, entry->dump());
}

Result<RestoreStats> parse_restore_stats(std::span<const std::byte> image, std::string_view name) {
  const Result<wire::StatsEntry> entry = parse_entry(image, name);
  if (!entry) {
    return entry.error();
  }
  if (!entry->has_restore()) {
    return unreadable(name,
                      "it holds no statistics of a restore (those of a dump: read stats-restore)",
                      Code::invalid_argument);
  }
  return stats_by(kRestoreRows, entry->restore());
}

Result<DumpStats> read_dump_stats(const std::string& path) {
  const auto bytes = read_image(path);
  return bytes ? parse_dump_stats(*bytes, path) : Result<DumpStats>(bytes.error());
}

Result<RestoreStats> read_restore_stats(const std::string& path) {
  const auto bytes = read_image(path);
  return bytes ? parse_restore_stats(*bytes, path) : Result<RestoreStats>(bytes.error());
}

}  // namespace kymo::criu
