#include "lens/report/checkpoint_stats.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lens/report/checkpoint_record.h"
#include "lens/report/human.h"
#include "lens/report/table.h"

namespace kymo::report {
namespace {

using criu::CheckpointPages;
using criu::MappingPages;
using criu::PageCounts;
using criu::ProcessPages;
using criu::StatsFigure;
using Align = Table::Align;

constexpr std::size_t kLabel = 12;

std::string labelled(const char* label, const std::string& text) {
  return fmt::format("{:<{}}{}\n", label, kLabel, text);
}

double page_bytes(std::uint64_t pages) {
  return static_cast<double>(pages) * static_cast<double>(criu::kPageBytes);
}

std::string share_of(std::uint64_t pages, std::uint64_t all) {
  return all == 0 ? "" : percent(static_cast<double>(pages) / static_cast<double>(all));
}

// CRIU counts times in 32-bit microseconds, which wrap around. Notes the times that have wrapped
// according to the log.
void note_wrapped(const std::vector<StatsFigure>& figures,
                  const std::optional<criu::LogPhases>& phases, std::vector<std::string>& notes) {
  const std::uint64_t span_us = phases ? phases->total_us : 0;
  for (const StatsFigure& figure : figures) {
    if (figure.unit != Unit::microseconds) {
      continue;
    }
    const auto whole = criu::unwrapped_us(static_cast<std::uint32_t>(figure.value), span_us);
    if (whole) {
      notes.push_back(
          fmt::format("{} may have wrapped around, which its 32 bits do every 71.6 min, because "
                      "CRIU's log spans "
                      "more time: its value is {} µs, but {} µs fits the log",
                      figure.name, with_commas(figure.value), with_commas(*whole)));
    }
  }
}

std::string log_of(const criu::ImageSet& images, const char* name,
                   std::vector<std::string>& notes) {
  if (!images.has(name)) {
    return {};
  }
  const auto bytes = images.read(name);
  if (!bytes) {
    notes.push_back(bytes.error().message);
    return {};
  }
  return {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
}

template <class Stats>
void read_one(const criu::ImageSet& images, const char* name,
              Result<Stats> (*parse)(std::span<const std::byte>, std::string_view),
              std::optional<Stats>& stats, std::string& where, std::vector<std::string>& notes) {
  if (!images.has(name)) {
    return;
  }
  where = images.where(name);
  const auto bytes = images.read(name);
  Result<Stats> read = bytes ? parse(*bytes, where) : Result<Stats>(bytes.error());
  if (!read) {
    notes.push_back(read.error().message);
    return;
  }
  stats = *read;
}

// Reads the phases of a log, and notes the statistics that have wrapped according to it.
template <class Stats>
std::optional<criu::LogPhases> read_phases(const criu::ImageSet& images, const char* name,
                                           criu::LogPhases (*parse)(std::string_view,
                                                                    const std::optional<Stats>&),
                                           const std::optional<Stats>& stats,
                                           std::vector<std::string>& notes) {
  const std::string log = log_of(images, name, notes);
  std::optional<criu::LogPhases> phases = parse(log, stats);
  if (phases->phases.empty()) {
    if (!log.empty()) {
      notes.push_back(images.where(name) + " shows no phases: its lines have no times");
    }
    phases.reset();
  }
  if (stats) {
    note_wrapped(figures(*stats), phases, notes);
  }
  return phases;
}

std::string figures_text(const char* label, const std::string& where,
                         const std::vector<StatsFigure>& figures) {
  Table table(
      {{"FIGURE", Align::left}, {"EXACT", Align::right}, {"", Align::right}, {"", Align::left}});
  for (const StatsFigure& figure : figures) {
    const bool pages = figure.unit == Unit::pages;
    table.add({figure.name, with_commas(figure.value),
               pages ? bytes(page_bytes(figure.value))
               : figure.unit == Unit::microseconds
                   ? duration(static_cast<double>(figure.value) * 1e3)
                   : std::string(),
               figure.help});
  }
  return labelled(label, printable(where)) + table.str() + '\n';
}

// `path`: the statistics that could not be read; there is a note about them. Empty if there is no
// such file.
std::string without_statistics(const std::string& path, const char* otherwise) {
  return path.empty() ? fmt::format("no statistics are here: {}", otherwise)
                      : "its statistics cannot be read";
}

void add_row(Table& table, const std::string& pid, const std::string& what, const PageCounts& pages,
             std::uint64_t all) {
  const std::uint64_t in_images = pages.present;
  table.add({pid, what, with_commas(in_images), bytes(page_bytes(in_images)),
             share_of(in_images, all), pages.in_parent == 0 ? "" : with_commas(pages.in_parent)});
}

std::string mapping_text(const MappingPages& mapping) {
  return fmt::format("{} {:x}-{:x}", printable(mapping.name), mapping.start, mapping.end);
}

std::string pages_text(const CheckpointPages& pages, std::size_t mappings) {
  const std::uint64_t all = pages.pages.present;
  Table table({{"PID", Align::right},
               {"PROCESS, ITS MAPPINGS", Align::left},
               {"PAGES", Align::right},
               {"", Align::right},
               {"SHARE", Align::right},
               {"IN PARENT", Align::right}});
  for (const ProcessPages& process : pages.processes) {
    add_row(table, std::to_string(process.pid),
            process.command.empty() ? "(its name is not there)" : printable(process.command),
            process.pages, all);
    const std::size_t shown = std::min(mappings, process.mappings.size());
    for (std::size_t i = 0; i < shown; ++i) {
      add_row(table, "", "  " + mapping_text(process.mappings[i]), process.mappings[i].pages, all);
    }
    if (shown < process.mappings.size()) {
      PageCounts rest;
      for (std::size_t i = shown; i < process.mappings.size(); ++i) {
        rest.present += process.mappings[i].pages.present;
        rest.in_parent += process.mappings[i].pages.in_parent;
      }
      add_row(table, "", fmt::format("  {} more", process.mappings.size() - shown), rest, all);
    }
  }
  for (const criu::SharedPages& shared : pages.shared) {
    add_row(table, "", fmt::format("[shared {}]", shared.id), shared.pages, all);
  }
  return labelled("pages",
                  fmt::format("{} in the images, {}", with_commas(all), bytes(page_bytes(all)))) +
         table.str() + '\n';
}

void add_phases(Table& table, const std::vector<criu::LogPhase>& phases, const std::string& indent,
                std::uint64_t total_us) {
  constexpr std::size_t kEvidence = 44;
  const auto time = [](std::uint64_t us) { return duration(static_cast<double>(us) * 1e3); };
  for (const criu::LogPhase& phase : phases) {
    table.add({indent + phase.name, phase.spans.empty() ? "" : time(phase.spans.front().begin_us),
               time(phase.duration_us), share_of(phase.duration_us, total_us),
               time(phase.uncertainty_us), shortened(printable(phase.evidence), kEvidence)});
  }
}

std::string phases_text(const char* label, const std::optional<criu::LogPhases>& phases) {
  if (!phases) {
    return {};
  }
  Table table({{label, Align::left},
               {"BEGINS", Align::right},
               {"LASTS", Align::right},
               {"SHARE", Align::right},
               {"± AT MOST", Align::right},
               {"BEGINS WITH", Align::left}});
  add_phases(table, phases->phases, "", phases->total_us);
  for (const criu::ProcessPhases& process : phases->processes) {
    table.add({fmt::format("process {}", process.pid), "", "", "", "", ""});
    add_phases(table, process.phases, "  ", phases->total_us);
  }
  std::string text = table.str();
  for (const std::string& note : phases->notes) {
    text += "  " + printable(note) + '\n';
  }
  return text + '\n';
}

nlohmann::json phases_json(const std::vector<criu::LogPhase>& phases) {
  nlohmann::json json = nlohmann::json::array();
  for (const criu::LogPhase& phase : phases) {
    nlohmann::json spans = nlohmann::json::array();
    for (const criu::PhaseSpan& span : phase.spans) {
      spans.push_back({{"begin_us", span.begin_us}, {"end_us", span.end_us}});
    }
    json.push_back({{"name", phase.name},
                    {"duration_us", phase.duration_us},
                    {"uncertainty_us", phase.uncertainty_us},
                    {"evidence", phase.evidence},
                    {"spans", std::move(spans)}});
  }
  return json;
}

nlohmann::json phases_json(const std::optional<criu::LogPhases>& phases) {
  if (!phases) {
    return nullptr;
  }
  nlohmann::json processes = nlohmann::json::array();
  for (const criu::ProcessPhases& process : phases->processes) {
    processes.push_back({{"pid", process.pid}, {"phases", phases_json(process.phases)}});
  }
  return {{"total_us", phases->total_us},
          {"phases", phases_json(phases->phases)},
          {"processes", std::move(processes)},
          {"notes", phases->notes}};
}

nlohmann::json counts_json(const PageCounts& pages) {
  return {
      {"pages", pages.present}, {"pages_in_parent", pages.in_parent}, {"pages_lazy", pages.lazy}};
}

nlohmann::json process_json(const ProcessPages& process) {
  nlohmann::json json = counts_json(process.pages);
  json["pid"] = process.pid;
  json["command"] = process.command;
  json["mappings"] = nlohmann::json::array();
  for (const MappingPages& mapping : process.mappings) {
    nlohmann::json one = counts_json(mapping.pages);
    one["name"] = mapping.name;
    one["start"] = fmt::format("{:#x}", mapping.start);
    one["end"] = fmt::format("{:#x}", mapping.end);
    json["mappings"].push_back(std::move(one));
  }
  return json;
}

}  // namespace

nlohmann::json json_of(const std::vector<StatsFigure>& figures) {
  nlohmann::json object = nlohmann::json::object();
  for (const StatsFigure& figure : figures) {
    object[figure.name] = figure.value;
  }
  return object;
}

namespace {

std::vector<std::string> notes_of(const CheckpointStats& stats) {
  std::vector<std::string> all = stats.causes;
  if (!stats.unfinished.empty()) all.insert(all.begin(), stats.unfinished);
  all.insert(all.end(), stats.notes.begin(), stats.notes.end());
  return all;
}

// CheckpointStats::unfinished of kymod's record.
std::string unfinished_in(const std::string& path) {
  const Result<nlohmann::json> record = read_checkpoint_record(path);
  if (!record || is_complete(*record, path)) return {};
  const auto error = record->find("error");
  if (error != record->end() && error->is_string()) {
    return "the dump failed: " + error->get<std::string>();
  }
  return "kymod has noted that this dump began, and not how it ended: it lasts, kymod was killed "
         "in it, or its disk does not answer; it is no checkpoint";
}

}  // namespace

Result<CheckpointStats> read_checkpoint_stats(const std::string& path) {
  const Result<criu::ImageSet> images = criu::ImageSet::open(path);
  if (!images) {
    return images.error();
  }
  CheckpointStats stats;
  stats.path = path;
  stats.unfinished = unfinished_in(path);
  stats.image_files = images->image_files();
  stats.image_bytes = images->image_bytes();
  read_one(*images, "stats-dump", &criu::parse_dump_stats, stats.dump, stats.dump_path,
           stats.notes);
  read_one(*images, "stats-restore", &criu::parse_restore_stats, stats.restore, stats.restore_path,
           stats.notes);
  if (stats.dump) {
    stats.causes = criu::known_causes(*stats.dump);
  }
  if (images->has("dump.log")) stats.dump_log = images->where("dump.log");
  stats.dump_phases = read_phases(*images, "dump.log", &criu::dump_phases, stats.dump, stats.notes);
  stats.restore_phases =
      read_phases(*images, "restore.log", &criu::restore_phases, stats.restore, stats.notes);
  stats.pages = criu::read_pages(*images);
  stats.shape = criu::memory_shape(*images);
  for (const std::string& note : stats.pages.notes) {
    stats.notes.push_back(note);
  }
  for (const std::string& left_out : images->left_out()) {
    stats.notes.push_back("left out: " + left_out);
  }
  return stats;
}

std::string text_of(const CheckpointStats& stats, std::size_t mappings) {
  std::string text =
      labelled("checkpoint", fmt::format("{}, {} image files, {}", printable(stats.path),
                                         with_commas(stats.image_files), bytes(stats.image_bytes)));
  text += stats.dump ? "\n" + figures_text("dump", stats.dump_path, figures(*stats.dump))
                     : labelled("dump", without_statistics(stats.dump_path,
                                                           "CRIU writes none if a dump fails"));
  text += phases_text("PHASE OF THE DUMP", stats.dump_phases);
  text += stats.restore
              ? figures_text("restore", stats.restore_path, figures(*stats.restore))
              : labelled("restore",
                         without_statistics(stats.restore_path,
                                            "it was not restored here, or the restore failed")) +
                    "\n";
  text += phases_text("PHASE OF THE RESTORE", stats.restore_phases);
  if (!stats.pages.processes.empty() || !stats.pages.shared.empty()) {
    text += pages_text(stats.pages, mappings);
  }
  for (const std::string& note : notes_of(stats)) {
    text += labelled("note", printable(note));
  }
  text.erase(text.find_last_not_of('\n') + 1);
  return text + '\n';
}

nlohmann::json json_of(const CheckpointStats& stats) {
  nlohmann::json processes = nlohmann::json::array();
  for (const ProcessPages& process : stats.pages.processes) {
    processes.push_back(process_json(process));
  }
  nlohmann::json shared = nlohmann::json::array();
  for (const criu::SharedPages& one : stats.pages.shared) {
    nlohmann::json json = counts_json(one.pages);
    json["id"] = one.id;
    shared.push_back(std::move(json));
  }
  nlohmann::json json = counts_json(stats.pages.pages);
  json["path"] = stats.path;
  json["image_files"] = stats.image_files;
  json["image_bytes"] = stats.image_bytes;
  json["dump"] = stats.dump ? json_of(figures(*stats.dump)) : nlohmann::json();
  json["restore"] = stats.restore ? json_of(figures(*stats.restore)) : nlohmann::json();
  json["dump_phases"] = phases_json(stats.dump_phases);
  json["restore_phases"] = phases_json(stats.restore_phases);
  json["processes"] = std::move(processes);
  json["shared"] = std::move(shared);
  json["notes"] = notes_of(stats);
  return json;
}

}  // namespace kymo::report
