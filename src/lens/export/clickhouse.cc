// SQL statements that create and fill tables in ClickHouse, with types that old versions know.

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "base/json_text.h"
#include "lens/export/formats.h"
#include "lens/export/parts.h"
#include "lens/export/text.h"
#include "lens/report/phases.h"

namespace kymo::exporting {
namespace {

// Each INSERT becomes a part of the table. Few large parts are better, but a client limits the size
// of a statement.
constexpr std::uint64_t kRowsAnInsert = 50'000;

// The text in the quotation marks `mark`, as ClickHouse needs it for a string or a name.
std::string in_marks(std::string_view text, char mark) {
  std::string out(1, mark);
  for (const char c : text) {
    if (c == '\\' || c == mark) out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\0') {
      out += "\\0";
    } else {
      out += c;
    }
  }
  return out += mark;
}

std::string string_of(std::string_view text) {
  return in_marks(valid_utf8(text), '\'');
}

class ClickHouseWriter {
 public:
  ClickHouseWriter(const analysis::Summary& summary, std::string prefix, ExportFile& file)
      : summary_(summary), prefix_(std::move(prefix)), file_(file) {}

  Result<void> write() {
    properties();
    metrics();
    phases();
    scopes();
    if (auto written = gaps(); !written) return written;
    return samples();
  }

 private:
  // `columns`: the names and types. `order`: the expression for ORDER BY.
  void create(const std::string& table, const std::string& columns, const std::string& order) {
    end_insert();
    table_ = in_marks(prefix_ + "_" + table, '`');
    file_.text() += "CREATE TABLE " + table_ + " (" + columns + ") ENGINE = MergeTree ORDER BY " +
                    order + ";\n";
  }
  // Begins a tuple; the caller writes its values. All tuples are on one line, because with
  // --multiquery, old clients take the end of the line for the end of the data.
  std::string& row() {
    if (rows_ == kRowsAnInsert) end_insert();
    file_.text() += rows_ == 0 ? "INSERT INTO " + table_ + " VALUES (" : std::string(",(");
    ++rows_;
    file_.flush_if_large();
    return file_.text();
  }
  void row(const std::vector<std::string>& values) {
    std::string text;
    for (const std::string& value : values) text += (text.empty() ? "" : ",") + value;
    row() += text + ")";
  }
  void end_insert() {
    if (rows_ != 0) file_.text() += ";\n";
    rows_ = 0;
  }

  void properties() {
    create("recording", "name String, value String", "name");
    for (const auto& [name, value] : properties_of(summary_)) {
      row({string_of(name), string_of(value)});
    }
  }
  void metrics() {
    create("metrics",
           "column String, metric String, kind String, unit String, help String, "
           "fields Array(String), field_values Array(String)",
           "column");
    const std::vector<std::string> names = table_columns(summary_, false);
    for (std::size_t i = 0; i < summary_.columns.size(); ++i) {
      const analysis::ColumnInfo& info = summary_.columns[i].info;
      std::string fields;
      std::string values;
      for (const auto& [field, value] : info.fields) {
        fields += (fields.empty() ? "" : ",") + string_of(field);
        values += (values.empty() ? "" : ",") + string_of(value);
      }
      row({string_of(names[i + 1]), string_of(info.metric),
           string_of(analysis::to_string(info.kind)),
           string_of(info.described ? analysis::to_string(info.unit) : ""), string_of(info.help),
           "[" + fields + "]", "[" + values + "]"});
    }
  }
  void phases() {
    create("phases", "name String, begin_ns UInt64, end_ns UInt64", "begin_ns");
    for (const diagnosis::Phase& phase : report::phases_of(summary_)) {
      row({string_of(phase.name), std::to_string(phase.begin_ns), std::to_string(phase.end_ns)});
    }
  }
  void scopes() {
    create("scopes",
           "id UInt32, parent Int64, name String, category String, start_ns Int64, "
           "duration_ns Int64, bytes UInt64, error String, parallel UInt8, redundant UInt8, "
           "unfinished UInt8, thread UInt64",
           "id");
    const std::vector<report::RecordedScope> scopes = scopes_of(summary_);
    for (std::size_t i = 0; i < scopes.size(); ++i) {
      const report::RecordedScope& scope = scopes[i];
      row({std::to_string(i),
           scope.parent == report::RecordedScope::kNoParent ? "-1" : std::to_string(scope.parent),
           string_of(scope.name), string_of(scope.category), std::to_string(scope.start_ns),
           std::to_string(scope.duration_ns), std::to_string(scope.bytes), string_of(scope.error),
           std::to_string(scope.parallel ? 1 : 0), std::to_string(scope.redundant ? 1 : 0),
           std::to_string(scope.unfinished ? 1 : 0), std::to_string(scope.thread)});
    }
  }
  Result<void> gaps() {
    create("gaps", "start_ns UInt64, end_ns UInt64, ticks UInt64, cause String", "start_ns");
    return for_each_gap(summary_, [&](const Gap& gap) {
      row({std::to_string(gap.start_ns), std::to_string(gap.end_ns), std::to_string(gap.ticks),
           string_of(analysis::to_string(gap.cause))});
    });
  }
  Result<void> samples() {
    std::string columns;
    for (const std::string& name : table_columns(summary_, false)) {
      columns += (columns.empty() ? "" : ", ") + in_marks(name, '`') + " UInt64";
    }
    create("samples", columns, "time_ns");
    Result<void> written =
        for_each_block(summary_, [&](const analysis::RowBlock& block, std::size_t rows) {
          for (std::size_t at = 0; at < rows && !file_.failed(); ++at) {
            std::string& text = row();
            for (std::size_t i = 0; i <= summary_.columns.size(); ++i) {
              if (i != 0) text += ',';
              append_number(block.column(i)[at], text);
            }
            text += ')';
          }
        });
    end_insert();
    return written;
  }

  const analysis::Summary& summary_;
  std::string prefix_;
  ExportFile& file_;
  std::string table_;
  std::uint64_t rows_ = 0;  // of the current INSERT
};

}  // namespace

Result<void> write_clickhouse(const analysis::Summary& summary, const ExportOptions& options,
                              ExportFile& file) {
  std::string prefix = options.table_prefix.empty() ? name_of(summary) : options.table_prefix;
  for (char& c : prefix) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x80 || (std::isalnum(byte) == 0 && c != '_')) c = '_';
  }
  return ClickHouseWriter(summary, std::move(prefix), file).write();
}

}  // namespace kymo::exporting
