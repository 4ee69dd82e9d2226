// Chrome's trace event format as JSON, which Perfetto's page and chrome://tracing open: counters as
// `C` events, phases and gaps as complete `X` events on threads of their own, scopes on the threads
// that ran them.

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/json_text.h"
#include "lens/export/formats.h"
#include "lens/export/parts.h"
#include "lens/export/text.h"
#include "lens/report/phases.h"

namespace kymo::exporting {
namespace {

using Json = nlohmann::json;

// The process ids of the spans: the recording, and the program whose scopes have the ids of its
// real threads.
constexpr std::size_t kRecording = 1;
constexpr std::size_t kProgram = 2;
// The thread ids of the recording. Scopes whose thread is unknown use as many as they need, from
// kScopesThread on.
constexpr std::size_t kPhasesThread = 1;
constexpr std::size_t kGapsThread = 2;
constexpr std::size_t kScopesThread = 3;
// No real thread id is as large (PID_MAX_LIMIT of the kernel).
constexpr std::size_t kNoThread = std::size_t{1} << 22U;

// Appends the time in microseconds, as the format requires, with all nanoseconds as decimals.
void append_us(std::int64_t ns, std::string& out) {
  if (ns < 0) out += '-';
  append_fixed(ns < 0 ? -static_cast<std::uint64_t>(ns) : static_cast<std::uint64_t>(ns), 3, out);
}

// A damaged file may have times above INT64_MAX. A real recording cannot.
std::int64_t clamped(std::uint64_t ns) {
  return static_cast<std::int64_t>(std::min<std::uint64_t>(ns, INT64_MAX));
}

struct Span {
  std::string_view name;
  std::string_view category;
  std::size_t process = kRecording;
  std::size_t thread = 0;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
};

// Where the spans of some scopes go: the thread that ran them, or a further line for it.
struct ScopeLine {
  std::uint64_t thread = 0;  // 0: unknown
  std::size_t number = 0;    // among the lines of the thread
  std::vector<std::size_t> open;

  [[nodiscard]] std::size_t process() const { return thread == 0 ? kRecording : kProgram; }
  [[nodiscard]] std::size_t id() const {
    return thread == 0 ? kScopesThread + number : thread + number * kNoThread;
  }
  [[nodiscard]] std::string name() const {
    return (thread == 0 ? "timing" : "thread " + std::to_string(thread)) +
           (number == 0 ? "" : ", in parallel");
  }
};

// Assigns scopes to lines. Two spans of one line must not overlap, unless the later one is a part
// of the earlier one and lies within it. A scope that ends after its parent, or beside another one
// of an unknown thread, gets another line.
class ScopeLines {
 public:
  explicit ScopeLines(const std::vector<report::RecordedScope>& scopes) : scopes_(scopes) {}

  // Call it in the order of the start times; with equal starts, the longer scope first.
  const ScopeLine& place(std::size_t scope) {
    const std::uint64_t thread = scopes_[scope].thread < kNoThread ? scopes_[scope].thread : 0;
    std::size_t number = 0;
    for (ScopeLine& line : lines_) {
      if (line.thread != thread) continue;
      if (fits(scope, line.open)) {
        line.open.push_back(scope);
        return line;
      }
      ++number;
    }
    return lines_.emplace_back(ScopeLine{thread, number, {scope}});
  }
  [[nodiscard]] const std::vector<ScopeLine>& lines() const { return lines_; }

 private:
  bool fits(std::size_t scope, std::vector<std::size_t>& open) const {
    while (!open.empty() && scopes_[open.back()].end_ns() <= scopes_[scope].start_ns) {
      open.pop_back();
    }
    return open.empty() || (is_part_of(scope, open.back()) &&
                            scopes_[scope].end_ns() <= scopes_[open.back()].end_ns());
  }
  bool is_part_of(std::size_t scope, std::size_t other) const {
    while (scope != report::RecordedScope::kNoParent && scope != other)
      scope = scopes_[scope].parent;
    return scope == other;
  }

  const std::vector<report::RecordedScope>& scopes_;
  std::vector<ScopeLine> lines_;
};

class TraceWriter {
 public:
  TraceWriter(const analysis::Summary& summary, ExportFile& file)
      : summary_(summary), file_(file) {}

  Result<void> write() {
    begin();
    add_phases();
    add_scopes();
    if (auto added = add_gaps(); !added) return added;
    if (auto added = add_counters(); !added) return added;
    file_.text() += "\n]}\n";
    return {};
  }

 private:
  void begin() {
    Json properties = Json::object();
    for (const auto& [name, value] : properties_of(summary_)) properties[name] = value;
    file_.text() +=
        R"({"displayTimeUnit":"ns","otherData":)" + json_text(properties) + ",\n\"traceEvents\":[";
    write_name("process_name", kRecording, 0, "recording " + name_of(summary_));
  }

  void next_event() {
    if (!first_) file_.text() += ',';
    first_ = false;
    file_.text() += '\n';
    file_.flush_if_large();
  }

  static std::string place_of(std::size_t process, std::size_t thread) {
    return R"("pid":)" + std::to_string(process) + R"(,"tid":)" + std::to_string(thread);
  }

  void write_name(const char* what, std::size_t process, std::size_t thread,
                  const std::string& name) {
    next_event();
    file_.text() += R"({"ph":"M","ts":0,)" + place_of(process, thread) + R"(,"name":")" + what +
                    R"(","args":{"name":)" + json_string(name) + "}}";
  }

  void name_thread(std::size_t process, std::size_t thread, const std::string& name) {
    write_name("thread_name", process, thread, name);
    next_event();
    file_.text() += R"({"ph":"M","ts":0,)" + place_of(process, thread) +
                    R"(,"name":"thread_sort_index","args":{"sort_index":)" +
                    std::to_string(thread) + "}}";
  }

  void add_span(const Span& span, const Json& details) {
    next_event();
    std::string& text = file_.text();
    text += R"({"ph":"X",)" + place_of(span.process, span.thread) + R"(,"ts":)";
    append_us(span.begin_ns, text);
    text += R"(,"dur":)";
    append_us(span.end_ns - span.begin_ns, text);
    text += R"(,"name":)" + json_string(span.name) + R"(,"cat":)" + json_string(span.category);
    if (!details.empty()) text += R"(,"args":)" + json_text(details);
    text += '}';
  }

  void add_phases() {
    const std::vector<diagnosis::Phase> phases = report::phases_of(summary_);
    if (phases.empty()) return;
    name_thread(kRecording, kPhasesThread, "phases");
    for (const diagnosis::Phase& phase : phases) {
      add_span({phase.name, "phase", kRecording, kPhasesThread, clamped(phase.begin_ns),
                clamped(phase.end_ns)},
               Json::object());
    }
  }

  void add_scopes() {
    const std::vector<report::RecordedScope> scopes = scopes_of(summary_);
    std::vector<std::size_t> order(scopes.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return scopes[a].start_ns != scopes[b].start_ns ? scopes[a].start_ns < scopes[b].start_ns
                                                      : scopes[a].end_ns() > scopes[b].end_ns();
    });
    ScopeLines lines(scopes);
    for (const std::size_t i : order) add_scope(scopes[i], lines.place(i));
    bool any_thread = false;
    for (const ScopeLine& line : lines.lines()) {
      name_thread(line.process(), line.id(), line.name());
      any_thread = any_thread || line.thread != 0;
    }
    if (any_thread) {
      const auto& metadata = summary_.recording.metadata;
      write_name("process_name", kProgram, 0, "process " + std::to_string(metadata->pid));
    }
  }

  void add_scope(const report::RecordedScope& scope, const ScopeLine& line) {
    Json details = Json::object();
    if (scope.bytes != 0) details["bytes"] = scope.bytes;
    if (!scope.error.empty()) details["error"] = scope.error;
    if (scope.parallel) details["parallel"] = true;
    if (scope.redundant) details["redundant"] = true;
    if (scope.unfinished) details["unfinished"] = true;
    add_span({scope.name, scope.category.empty() ? "scope" : scope.category, line.process(),
              line.id(), scope.start_ns, scope.end_ns()},
             details);
  }

  Result<void> add_gaps() {
    std::int64_t last_end = 0;
    bool named = false;
    return for_each_gap(summary_, [&](const Gap& gap) {
      if (!named) name_thread(kRecording, kGapsThread, "missed ticks");
      named = true;
      // The gaps of a damaged list may overlap. They are drawn one after the other, with their
      // original times as details.
      const std::int64_t begin = std::max(clamped(gap.start_ns), last_end);
      last_end = std::max(clamped(gap.end_ns), begin);
      add_span({analysis::to_string(gap.cause), "gap", kRecording, kGapsThread, begin, last_end},
               {{"ticks", gap.ticks}, {"start_ns", gap.start_ns}, {"end_ns", gap.end_ns}});
    });
  }

  // A value holds until the next event, so unchanged values are left out, except in the first and
  // the last row.
  Result<void> add_counters() {
    std::vector<std::string> heads;
    for (const std::string& name : column_names(summary_, false)) {
      heads.push_back(R"({"ph":"C","pid":1,"tid":0,"name":)" + json_string(name) +
                      R"(,"args":{"value":)");
    }
    std::vector<std::uint64_t> last(heads.size());
    std::uint64_t row_number = 0;
    return for_each_block(summary_, [&](const analysis::RowBlock& block, std::size_t rows) {
      for (std::size_t row = 0; row < rows && !file_.failed(); ++row) {
        const bool end = row_number == 0 || row_number + 1 == summary_.rows;
        ++row_number;
        for (std::size_t i = 0; i < heads.size(); ++i) {
          const std::uint64_t value = block.column(i + 1)[row];
          if (!end && value == last[i]) continue;
          last[i] = value;
          next_event();
          file_.text() += heads[i];
          append_number(value, file_.text());
          file_.text() += R"(},"ts":)";
          append_us(clamped(block.times()[row]), file_.text());
          file_.text() += '}';
        }
      }
    });
  }

  const analysis::Summary& summary_;
  ExportFile& file_;
  bool first_ = true;
};

}  // namespace

Result<void> write_trace_json(const analysis::Summary& summary, ExportFile& file) {
  return TraceWriter(summary, file).write();
}

}  // namespace kymo::exporting
