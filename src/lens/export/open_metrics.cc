// OpenMetrics text with timestamps: one metric after the other, each with all its samples. Units
// are base units, and names are the same as on kymod's /metrics.

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>

#include "base/json_text.h"
#include "lens/analysis/histograms.h"
#include "lens/analysis/left_out.h"
#include "lens/export/column_store.h"
#include "lens/export/formats.h"
#include "lens/export/parts.h"
#include "lens/export/text.h"
#include "recorder/metrics/exposition_name.h"

namespace kymo::exporting {
namespace {

constexpr std::string_view kTotal = "_total";
constexpr std::uint64_t kNsPerSecond = 1'000'000'000;

// A time of the wall clock.
struct Moment {
  std::uint64_t seconds = 0;
  std::uint64_t ns = 0;

  Moment(std::uint64_t start_ns, std::uint64_t time_ns)
      : seconds(start_ns / kNsPerSecond + time_ns / kNsPerSecond),
        ns(start_ns % kNsPerSecond + time_ns % kNsPerSecond) {
    seconds += ns / kNsPerSecond;
    ns %= kNsPerSecond;
  }
};

// A valid name: characters that are not allowed become `_`.
std::string name_from(std::string_view text) {
  std::string name(text);
  for (char& c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x80 || (std::isalnum(byte) == 0 && c != '_')) c = '_';
  }
  return name;
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : valid_utf8(text)) {
    if (c == '\n') {
      out += "\\n";
    } else {
      if (c == '\\' || c == '"') out += '\\';
      out += c;
    }
  }
  return out;
}

// `{a="1",b="2"}`. Without metadata, the names of the fields are unknown, and numbers are used.
std::string labels_of(const analysis::ColumnInfo& info) {
  std::vector<std::string> names;
  std::vector<std::string> values;
  for (const auto& [name, value] : info.fields) {
    const std::string own = name_from(name);
    // A label must not begin with a digit, and Prometheus reserves names that begin with __.
    const bool plain = !own.empty() && !own.starts_with("__") &&
                       std::isdigit(static_cast<unsigned char>(own.front())) == 0;
    names.push_back(plain ? own : "field_" + own);
    values.push_back(value);
  }
  const std::size_t open = info.name.find('[');
  if (!info.described && open != std::string::npos && info.name.ends_with(']')) {
    std::string_view rest(info.name);
    rest = rest.substr(open + 1, info.name.size() - open - 2);
    for (;;) {
      const std::size_t comma = std::min(rest.find(','), rest.size());
      names.push_back("field_" + std::to_string(names.size() + 1));
      values.emplace_back(rest.substr(0, comma));
      if (comma == rest.size()) break;
      rest.remove_prefix(comma + 1);
    }
  }
  names = unique_names(names, false);
  std::string out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    out += (i == 0 ? "{" : ",") + names[i] + "=\"" + escaped(values[i]) + "\"";
  }
  return out.empty() ? out : out + "}";
}

struct Family {
  std::string name;  // of its samples, as on /metrics
  Kind kind = Kind::gauge;
  Unit unit = Unit::count;
  std::string help;
  std::vector<std::pair<std::size_t, std::string>> series = {};  // column and labels
  std::set<std::string> labels = {};
  std::optional<analysis::HistogramColumns> histogram = {};

  // All names that its samples have.
  [[nodiscard]] std::vector<std::string> names() const {
    if (histogram) return {name, name + "_bucket", name + "_sum", name + "_count"};
    return {name};
  }
  [[nodiscard]] bool is_counter() const { return kind == Kind::counter && !histogram; }
};

// The prefix of the recording is not trusted: it becomes a part of the text as it is.
std::string prefix_of(const analysis::Summary& summary, const ExportOptions& options,
                      std::vector<std::string>& notes) {
  constexpr const char* kUsual = "kymo_";
  if (options.metric_prefix) return *options.metric_prefix;
  const auto& metadata = summary.recording.metadata;
  if (!metadata || !metadata->prometheus_prefix) return kUsual;
  if (is_exposition_prefix(*metadata->prometheus_prefix)) return *metadata->prometheus_prefix;
  notes.push_back(
      std::string("the prometheus_prefix in the metadata cannot begin the name of a metric, so ") +
      kUsual + " is used: " + kExpositionPrefixRule);
  return kUsual;
}

// Gives the families the names that they have on /metrics. There, the registry has made them unique.
// If a name is taken nevertheless, as in the recording of another program, it gets a number.
class FamilyNames {
 public:
  FamilyNames(std::string prefix, std::vector<std::string>& notes)
      : prefix_(std::move(prefix)), notes_(notes) {}

  void give_name(const std::string& metric, Family& family) {
    const Metric named{.name = name_from(metric),
                       .kind = family.is_counter() ? Kind::counter : Kind::gauge,
                       .unit = family.unit};
    std::string own = exposition_name(named, prefix_);
    if (own.empty() || std::isdigit(static_cast<unsigned char>(own.front())) != 0) {
      own.insert(0, "_");
    }
    std::string ending = places_of(family.unit) != 0 ? "_seconds" : "";
    if (family.is_counter()) ending += kTotal;
    const std::string stem = own.substr(0, own.size() - ending.size());
    family.name = own;
    for (std::uint64_t n = 2; is_taken(family); ++n) {
      family.name = stem + "_" + std::to_string(n) + ending;
    }
    if (family.name != own) {
      notes_.push_back("another metric is exported as " + own + ", so " +
                       analysis::in_quotes(metric, 64) + " is exported as " + family.name);
    }
    for (std::string& name : family.names()) taken_.insert(std::move(name));
  }
  // The name of a counter in the lines that describe it has no _total. Empty if another metric has
  // that name, which no two families may have.
  [[nodiscard]] std::string without_total(const Family& counter) const {
    std::string name = counter.name.substr(0, counter.name.size() - kTotal.size());
    return taken_.contains(name) ? "" : name;
  }

 private:
  [[nodiscard]] bool is_taken(const Family& family) const {
    const std::vector<std::string> names = family.names();
    return std::any_of(names.begin(), names.end(),
                       [&](const std::string& name) { return taken_.contains(name); });
  }

  std::string prefix_;
  std::vector<std::string>& notes_;
  std::set<std::string> taken_;
};

// One family for each histogram, and one for the columns of each other metric. If two columns would
// be the same series, the second one gets a family of its own.
std::vector<Family> families_of(const analysis::Summary& summary, FamilyNames& names) {
  std::vector<Family> families;
  std::map<std::tuple<std::string, Kind, Unit>, std::size_t> newest;
  std::vector<analysis::ColumnInfo> infos;
  for (const analysis::ColumnSummary& column : summary.columns) infos.push_back(column.info);
  std::set<std::size_t> of_histograms;
  for (analysis::HistogramColumns& found : analysis::find_histograms(infos)) {
    for (std::size_t i = found.buckets.front(); i <= found.count; ++i) of_histograms.insert(i);
    Family family{{}, Kind::counter, found.unit, found.help};
    family.histogram = std::move(found);
    names.give_name(family.histogram->metric, family);
    families.push_back(std::move(family));
  }
  for (std::size_t i = 0; i < infos.size(); ++i) {
    // As on /metrics, what never had a value is left out. A note says so.
    if (of_histograms.contains(i) || summary.columns[i].no_value) continue;
    const analysis::ColumnInfo& info = infos[i];
    std::string labels = labels_of(info);
    const auto [found, is_new] =
        newest.try_emplace({info.metric, info.kind, info.unit}, families.size());
    if (is_new || families[found->second].labels.contains(labels)) {
      found->second = families.size();
      Family family{{}, info.kind, info.unit, info.help};
      names.give_name(info.metric, family);
      families.push_back(std::move(family));
    }
    Family& family = families[found->second];
    family.series.emplace_back(i + 1, labels);
    family.labels.insert(std::move(labels));
  }
  return families;
}

// Chooses the rows to write: the last row of each time that the export's reader can distinguish
// (one millisecond, or one nanosecond with `every_row`).
class RowChoice {
 public:
  RowChoice(std::uint64_t start_ns, bool every_row, ColumnStore& store)
      : start_ns_(start_ns), every_row_(every_row), store_(store) {}

  Result<void> add(const analysis::RowBlock& block, std::size_t rows, std::size_t columns) {
    if (!waiting_.empty() && differ(waiting_.front(), block.times().front())) {
      if (auto added = store_.add(waiting_); !added) return added;
    }
    chosen_.clear();
    for (std::size_t row = 0; row + 1 < rows; ++row) {
      if (differ(block.times()[row], block.times()[row + 1])) chosen_.push_back(row);
    }
    waiting_.clear();
    for (std::size_t i = 0; i < columns; ++i) waiting_.push_back(block.column(i)[rows - 1]);
    return store_.add(block, chosen_);
  }
  Result<void> finish() { return waiting_.empty() ? Result<void>() : store_.add(waiting_); }

 private:
  [[nodiscard]] bool differ(std::uint64_t a_ns, std::uint64_t b_ns) const {
    if (every_row_) return a_ns != b_ns;
    const Moment a(start_ns_, a_ns);
    const Moment b(start_ns_, b_ns);
    return a.seconds != b.seconds || a.ns / 1'000'000 != b.ns / 1'000'000;
  }

  std::uint64_t start_ns_;
  bool every_row_;
  ColumnStore& store_;
  std::vector<std::size_t> chosen_;
  std::vector<std::uint64_t> waiting_;  // the last row so far, which may yet be replaced
};

void write_head(const Family& family, const FamilyNames& names, std::string& out) {
  const std::string short_name = family.is_counter() ? names.without_total(family) : "";
  const std::string& name = short_name.empty() ? family.name : short_name;
  const char* const type = family.histogram       ? "histogram"
                           : !family.is_counter() ? "gauge"
                           : short_name.empty()   ? "unknown"
                                                  : "counter";
  out += "# TYPE " + name + " " + type + "\n";
  const std::string unit = places_of(family.unit) != 0  ? "seconds"
                           : family.unit == Unit::bytes ? "bytes"
                                                        : "";
  // The format requires that the name ends with the unit.
  if (!unit.empty() && name.ends_with("_" + unit)) out += "# UNIT " + name + " " + unit + "\n";
  if (!family.help.empty()) out += "# HELP " + name + " " + escaped(family.help) + "\n";
}

// " SECONDS.FRACTION\n"
void append_moment(const Moment& moment, bool every_row, std::string& text) {
  text += ' ';
  append_number(moment.seconds, text);
  // Prometheus reads a time as a double and cuts it off after the milliseconds. With more digits
  // than a double can hold, the time could be rounded up to the next millisecond.
  const std::size_t digits = every_row ? 9 : 6;
  std::string fraction;
  append_fixed(every_row ? moment.ns : moment.ns / 1000, digits, fraction);
  text.append(fraction, 1);  // without the 0 before the point
  text += '\n';
}

Result<void> write_series(const Family& family, const ColumnStore& store, std::uint64_t start_ns,
                          bool every_row, ExportFile& file) {
  const std::size_t places = places_of(family.unit);
  for (const auto& [column, labels] : family.series) {
    const std::string head = family.name + labels + " ";
    Result<void> written = store.read({&column, 1}, [&](auto times, auto values) {
      for (std::size_t i = 0; i < times.size() && !file.failed(); ++i) {
        std::string& text = file.text();
        text += head;
        append_decimal(values[0][i], places, text);
        append_moment(Moment(start_ns, times[i]), every_row, text);
        file.flush_if_large();
      }
    });
    if (!written) return written;
  }
  return {};
}

// The bound of a bucket, with as many digits as prometheus-cpp writes on /metrics: another text would
// be another series. Unlike there, a whole number is "64.0", as OpenMetrics requires.
std::string bound_text(std::uint64_t bound, Unit unit) {
  std::array<char, 40> digits{};
  std::snprintf(digits.data(), digits.size(), "%.16g", in_base_unit(bound, unit));
  std::string text(digits.data());
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

// Writes all samples of one time together, as the format requires. As on /metrics, the number of
// values is the sum of the buckets, so that they agree even if a sample was taken while a value was
// being added.
Result<void> write_histogram(const Family& family, const ColumnStore& store, std::uint64_t start_ns,
                             bool every_row, ExportFile& file) {
  const analysis::HistogramColumns& histogram = *family.histogram;
  const std::size_t places = places_of(family.unit);
  std::vector<std::size_t> columns;
  std::vector<std::string> heads;
  for (std::size_t i = 0; i < histogram.buckets.size(); ++i) {
    columns.push_back(histogram.buckets[i] + 1);
    const std::string bound =
        i < histogram.bounds.size() ? bound_text(histogram.bounds[i], family.unit) : "+Inf";
    heads.push_back(family.name + "_bucket{le=\"" + bound + "\"} ");
  }
  columns.push_back(histogram.sum + 1);
  return store.read(columns, [&](auto times, auto values) {
    for (std::size_t row = 0; row < times.size() && !file.failed(); ++row) {
      const Moment moment(start_ns, times[row]);
      std::string& text = file.text();
      std::uint64_t count = 0;
      for (std::size_t i = 0; i < heads.size(); ++i) {
        count += values[i][row];
        text += heads[i];
        append_number(count, text);
        append_moment(moment, every_row, text);
      }
      text += family.name + "_count ";
      append_number(count, text);
      append_moment(moment, every_row, text);
      text += family.name + "_sum ";
      append_decimal(values[heads.size()][row], places, text);
      append_moment(moment, every_row, text);
      file.flush_if_large();
    }
  });
}

Result<void> write_samples(const Family& family, const ColumnStore& store, std::uint64_t start_ns,
                           bool every_row, ExportFile& file) {
  return family.histogram ? write_histogram(family, store, start_ns, every_row, file)
                          : write_series(family, store, start_ns, every_row, file);
}

}  // namespace

Result<void> write_open_metrics(const analysis::Summary& summary, const ExportOptions& options,
                                Files& files, Exported& exported) {
  const auto& metadata = summary.recording.metadata;
  const std::int64_t start = metadata ? metadata->start_unix_ns : 0;
  if (start <= 0) {
    exported.notes.emplace_back(
        "the wall clock at the recording's start is unknown: its times count from 1970");
  }
  const std::uint64_t start_ns = start <= 0 ? 0 : static_cast<std::uint64_t>(start);
  const std::size_t columns = summary.columns.size() + 1;
  ColumnStore store(std::move(files.columns), columns, summary.rows);
  RowChoice choice(start_ns, options.every_row, store);
  Result<void> chosen;
  Result<void> read =
      for_each_block(summary, [&](const analysis::RowBlock& block, std::size_t rows) {
        if (chosen) chosen = choice.add(block, rows, columns);
      });
  if (!read) return read;
  if (chosen) chosen = choice.finish();
  if (!chosen) return chosen;
  exported.rows = store.rows();
  exported.rows_passed_over = summary.rows - exported.rows;
  FamilyNames names(prefix_of(summary, options, exported.notes), exported.notes);
  for (const Family& family : families_of(summary, names)) {
    write_head(family, names, files.text->text());
    Result<void> written = write_samples(family, store, start_ns, options.every_row, *files.text);
    if (!written) return written;
  }
  files.text->text() += "# EOF\n";
  return {};
}

}  // namespace kymo::exporting
