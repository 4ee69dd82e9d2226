#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/json_text.h"
#include "base/proc/process.h"
#include "base/rate.h"
#include "client/client.h"
#include "jobs/watched_process.h"
#include "lens/report/human.h"
#include "print.h"
#include "recorder/programs/live.h"
#include "recordings/truncated.h"
#include "verbs.h"

namespace kymo::cli {
namespace {

using record::LiveRow;
using record::LiveSource;
using record::LiveValue;

constexpr timespec kRefresh{0, 250'000'000};
constexpr const char* kOtherScreen = "\x1b[?1049h\x1b[?25l";
constexpr const char* kScreenBack = "\x1b[?25h\x1b[?1049l";

struct WatchArguments {
  std::string ring;
  int pid = 0;
  bool once = false;
};

// The name of a state, found by its number in a help text such as "Phase: 0 idle, 1 freeze". Empty
// if it has none.
std::string state_name(const std::string& help, std::uint64_t number) {
  const std::string key = " " + std::to_string(number) + " ";
  const std::size_t at = help.find(key);
  if (at == std::string::npos || at == 0 || (help[at - 1] != ':' && help[at - 1] != ',')) return "";
  const std::size_t begin = at + key.size();
  return help.substr(begin, help.find(',', begin) - begin);
}

// The daemon's own metrics, read through its socket, and what the kernel knows of its jobs.
class DaemonSource : public LiveSource {
 public:
  explicit DaemonSource(client::Client client) : client_(std::move(client)) {}

  Result<LiveRow> read() override {
    const Result<v1::MetricsResponse> response = client_.metrics();
    if (!response) return response.error();
    LiveRow row;
    row.time_ns = monotonic_ns();
    for (const v1::Metric& metric : response->metrics()) {
      for (const v1::Metric::Value& value : metric.values()) {
        std::string fields;
        for (const std::string& field : value.field_values()) {
          fields += (fields.empty() ? "" : ",") + field;
        }
        row.values.push_back({fields.empty() ? metric.name() : metric.name() + "[" + fields + "]",
                              metric.kind() != v1::Metric::GAUGE, metric.unit(), value.value()});
        if (metric.name() == "phase") {
          row.values.back().shown = state_name(metric.help(), value.value());
        }
      }
    }
    // A daemon whose disk does not answer has no list, but its metrics are still worth seeing.
    if (const Result<v1::ListResponse> jobs = client_.list(); jobs) jobs_.append_to(row, *jobs);
    return row;
  }

 private:
  client::Client client_;
  WatchedJobs jobs_;
};

Result<std::unique_ptr<LiveSource>> open_source(const WatchArguments& arguments,
                                                const Context& context) {
  if (!arguments.ring.empty()) return record::watch_ring(arguments.ring);
  if (arguments.pid != 0) {
    auto own = record::watch_process(arguments.pid);
    if (own || own.error().code != Code::not_found || !probe::read_process(arguments.pid)) {
      return own;
    }
    return std::unique_ptr<LiveSource>(new ProcessSource(arguments.pid));
  }
  Result<client::Client> client = client::Client::connect(context.socket);
  if (!client) return client.error();
  return std::unique_ptr<LiveSource>(new DaemonSource(std::move(client).value()));
}

// The rate of each counter since the row before, in its unit per second.
std::map<std::string, double> rates_between(const LiveRow& before, const LiveRow& after) {
  std::map<std::string, std::uint64_t> values;
  for (const LiveValue& value : before.values) values[value.name] = value.value;
  std::map<std::string, double> rates;
  if (after.time_ns <= before.time_ns) return rates;
  for (const LiveValue& value : after.values) {
    const auto was = values.find(value.name);
    if (value.counter && was != values.end() && value.value >= was->second) {
      rates[value.name] = rate_per_second(static_cast<double>(value.value - was->second),
                                          after.time_ns - before.time_ns);
    }
  }
  return rates;
}

void print_json_line(const LiveRow& row, const std::map<std::string, double>& rates) {
  nlohmann::json columns = nlohmann::json::object();
  for (const LiveValue& value : row.values) {
    nlohmann::json& column = columns[value.name];
    column = {{"value", value.value}, {"unit", value.unit}};
    if (const auto rate = rates.find(value.name); rate != rates.end()) {
      column["per_second"] = rate->second;
    }
  }
  const nlohmann::json line{{"time_ns", row.time_ns}, {"ended", row.ended}, {"columns", columns}};
  std::printf("%s\n", json_text(line).c_str());
}

// Prints one line with the columns that changed.
void print_line(const LiveRow& row, const LiveRow& before) {
  std::string line = std::to_string(row.time_ns / 1'000'000) + " ms";
  for (std::size_t i = 0; i < row.values.size(); ++i) {
    const LiveValue& value = row.values[i];
    const bool same = i < before.values.size() && before.values[i].name == value.name &&
                      before.values[i].value == value.value;
    if (same) continue;
    line += "  " + value.name + "=";
    line += value.shown.empty() ? std::to_string(value.value) : value.shown;
  }
  std::printf("%s\n", line.c_str());
}

std::vector<std::string> table_lines(const LiveRow& row,
                                     const std::map<std::string, double>& rates) {
  std::size_t width = 6;
  for (const LiveValue& value : row.values) width = std::max(width, value.name.size());
  std::vector<std::string> lines;
  const auto add = [&](std::string name, std::string value, std::string rate,
                       const std::string& unit) {
    name.resize(width, ' ');
    value.insert(0, 22 - std::min<std::size_t>(22, value.size()), ' ');
    rate.insert(0, 18 - std::min<std::size_t>(18, rate.size()), ' ');
    lines.push_back(name + " " + value + " " + rate + "  " + unit);
  };
  add("COLUMN", "NOW", "PER SECOND", "UNIT");
  for (const LiveValue& value : row.values) {
    const auto rate = rates.find(value.name);
    add(value.name, value.shown.empty() ? report::with_commas(value.value) : value.shown,
        rate == rates.end()
            ? ""
            : report::with_commas(static_cast<std::uint64_t>(std::llround(rate->second))),
        value.unit);
  }
  return lines;
}

// Redraws the screen. If the table is too long, the last line says how many columns are missing.
void draw(const LiveRow& row, const std::map<std::string, double>& rates) {
  winsize size{};
  const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 2;
  const std::size_t height = known ? size.ws_row - 1U : 24;
  const std::size_t columns = known ? size.ws_col : 80;
  std::vector<std::string> lines = table_lines(row, rates);
  if (lines.size() > height) {
    const std::size_t hidden = lines.size() - height + 1;
    lines.resize(height - 1);
    lines.push_back("(" + std::to_string(hidden) + " more: make the window higher, or use --json)");
  }
  const char* no_color = std::getenv("NO_COLOR");
  const bool plain = no_color != nullptr && *no_color != '\0';
  std::string text = "\x1b[H";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string line = lines[i].substr(0, columns);
    text += (i == 0 && !plain ? "\x1b[1m" + line + "\x1b[0m" : line) + "\x1b[K\n";
  }
  text += "\x1b[J";
  std::fputs(text.c_str(), stdout);
}

// Uses the terminal's alternate screen, without a cursor, as long as the object lives.
class Screen {
 public:
  explicit Screen(bool on) : on_(on) {
    if (on_) std::fputs(kOtherScreen, stdout);
  }
  ~Screen() {
    if (!on_) return;
    std::fputs(kScreenBack, stdout);
    std::fflush(stdout);
  }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

 private:
  bool on_;
};

// Waits until the next refresh. Returns true if a signal asks the program to end.
bool asked_to_end(const sigset_t& signals) {
  return ::sigtimedwait(&signals, nullptr, &kRefresh) > 0;
}

void print_live_row(const LiveRow& row, const std::map<std::string, double>& rates) {
  for (const std::string& line : table_lines(row, rates)) std::printf("%s\n", line.c_str());
}

bool redraws(const WatchArguments& arguments, const Context& context) {
  return ::isatty(STDOUT_FILENO) == 1 && !context.json && !arguments.once;
}

Result<LiveRow> watch_on(LiveSource& source, const WatchArguments& arguments,
                         const Context& context) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  const bool lively = redraws(arguments, context);
  const Screen screen(lively);
  LiveRow before;
  for (bool first = true;; first = false) {
    Result<LiveRow> row = source.read();
    if (!row) return row;
    const auto rates = rates_between(before, *row);
    const bool last = row->ended || (arguments.once && !first);
    if (!arguments.once || last) {
      if (context.json) {
        print_json_line(*row, rates);
      } else if (arguments.once) {
        print_live_row(*row, rates);
      } else if (lively) {
        draw(*row, rates);
      } else {
        print_line(*row, before);
      }
    }
    if (std::fflush(stdout) != 0 || last || asked_to_end(signals)) return row;
    before = *std::move(row);
  }
}

void watch(const WatchArguments& arguments, Context& context) {
  if (!arguments.ring.empty() && arguments.pid != 0) {
    std::fprintf(stderr, "kymo: watch: name a ring or a process, not both\n");
    context.exit_code = kWrongUsage;
    return;
  }
  const std::string what = arguments.pid == 0
                               ? "the ring " + arguments.ring
                               : "the file of process " + std::to_string(arguments.pid);
  end_where_truncated(what + " was truncated while it was watched",
                      redraws(arguments, context) ? kScreenBack : "");
  const Result<std::unique_ptr<LiveSource>> source = open_source(arguments, context);
  if (!source) return fail(context, source.error());
  const Result<LiveRow> last = watch_on(**source, arguments, context);
  if (!last) return fail(context, last.error());
  if (last->ended) std::fprintf(stderr, "kymo: the recorder or program has ended\n");
}

}  // namespace

void add_watch(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<WatchArguments>();
  CLI::App* verb = app.add_subcommand(
      "watch", "Show the newest values and rates of a ring file, a process, or kymod (default)");
  verb->fallthrough();
  verb->add_option("RING", arguments->ring, "Ring file of a running recorder");
  verb->add_option("-p,--pid", arguments->pid,
                   "PID of a process: the counters that it has published, or its ring file; if it "
                   "has neither, "
                   "what the kernel knows of it and the machine")
      ->check(CLI::Range(1, 1 << 22));
  verb->add_flag("--once", arguments->once, "Print one table and exit");
  verb->add_flag("--json", context.json, "Print a line of JSON for each refresh");
  verb->callback([arguments, &context] { watch(*arguments, context); });
}

}  // namespace kymo::cli
