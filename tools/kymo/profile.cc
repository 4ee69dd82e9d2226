#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/json_text.h"
#include "client/client.h"
#include "confined.h"
#include "print.h"
#include "report/flame_page.h"
#include "report/human.h"
#include "report/page.h"
#include "report/table.h"
#include "stacks/frame_tree.h"
#include "stacks/output.h"
#include "stacks/session.h"
#include "time_option.h"
#include "verbs.h"

namespace kymo::cli {
namespace {

using Write = std::string (*)(const stacks::Profile& profile, stacks::Symbols& symbols);

struct ProfileArguments {
  std::vector<std::string> command;
  int pid = 0;
  bool all = false;
  std::string cgroup;
  std::string job;
  stacks::Options options;
  std::string output;
  std::size_t rows = 20;
  std::string sort;
};

// All stacks of waits end in the scheduler, so that only the callers tell something.
stacks::Order order_of(const ProfileArguments& arguments, bool waits) {
  return arguments.sort == "total" || (arguments.sort.empty() && waits) ? stacks::Order::total
                                                                        : stacks::Order::self;
}

// The format for the ending of a file's name; null if there is none.
Write format_of(const std::string& output) {
  const std::pair<const char*, Write> formats[] = {{".pb.gz", stacks::pprof},
                                                   {".pprof", stacks::pprof},
                                                   {".folded", stacks::folded},
                                                   {".txt", stacks::folded}};
  for (const auto& [ending, write] : formats) {
    if (output.ends_with(ending)) return write;
  }
  return nullptr;
}

bool is_page(const std::string& output) {
  return output.ends_with(".html");
}

void refuse_profile(Context& context, const std::string& why) {
  say("profile: " + why + " (see kymo profile --help)");
  context.exit_code = kWrongUsage;
}

// A value in the unit of the profile.
std::string weight_text(const stacks::Weight& weight) {
  return report::duration(weight.ns);
}

double share_of(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// What was taken, and what is missing in it.
std::string summary_text(const stacks::Profile& profile, const stacks::Hottest& hottest) {
  using report::with_commas;
  const stacks::SourceCounts& counts = profile.counts;
  std::string text = profile.waits ? report::duration(hottest.sum.ns) + " of waiting in " +
                                         with_commas(hottest.sum.samples) + " waits"
                                   : report::duration(hottest.sum.ns) + " of CPU time in " +
                                         with_commas(hottest.sum.samples) + " samples";
  text += " of " + report::duration(profile.duration_ns) + "\n";
  if (counts.short_waits != 0) {
    text += with_commas(counts.short_waits) + " shorter waits, " +
            report::duration(counts.short_wait_ns) + " in all, have no stacks\n";
  }
  text += "lost: " + with_commas(counts.lost) + (profile.waits ? " waits" : " samples") +
          "; unknown: " + with_commas(hottest.unknown_frames) + " of " +
          with_commas(hottest.frames) + " frames; truncated: " + with_commas(hottest.truncated) +
          " stacks\n";
  if (counts.lost_mappings != 0) {
    text += "lost: " + with_commas(counts.lost_mappings) +
            " records of what processes mapped; names may be missing\n";
  }
  return text;
}

std::string table_text(const stacks::Hottest& hottest, std::size_t rows) {
  constexpr std::size_t kNameLength = 60;
  using Align = report::Table::Align;
  report::Table table({{"SELF"},
                       {"SHARE"},
                       {"TOTAL"},
                       {"SHARE"},
                       {"FUNCTION", Align::left},
                       {"MODULE", Align::left}});
  for (const stacks::HotFunction& function : hottest.functions) {
    if (rows-- == 0) break;
    table.add(
        {weight_text(function.self), report::percent(share_of(function.self.ns, hottest.sum.ns)),
         weight_text(function.total), report::percent(share_of(function.total.ns, hottest.sum.ns)),
         report::shortened(function.name, kNameLength),
         std::filesystem::path(function.module).filename()});
  }
  return table.empty() ? "" : "\n" + table.str(0);
}

nlohmann::ordered_json json_of(const stacks::Profile& profile, const stacks::Hottest& hottest,
                               std::size_t rows) {
  nlohmann::ordered_json functions = nlohmann::ordered_json::array();
  for (const stacks::HotFunction& function : hottest.functions) {
    if (rows-- == 0) break;
    functions.push_back({{"function", function.name},
                         {"module", function.module},
                         {"self_samples", function.self.samples},
                         {"self_ns", function.self.ns},
                         {"self_share", share_of(function.self.ns, hottest.sum.ns)},
                         {"total_samples", function.total.samples},
                         {"total_ns", function.total.ns},
                         {"total_share", share_of(function.total.ns, hottest.sum.ns)}});
  }
  return {{"format_version", 1},
          {"kind", profile.waits ? "wait" : "cpu"},
          {"duration_ns", profile.duration_ns},
          {"period_ns", profile.period_ns},
          {"samples", hottest.sum.samples},
          {"ns", hottest.sum.ns},
          {"lost", profile.counts.lost},
          {"lost_mappings", profile.counts.lost_mappings},
          {"short_waits", profile.counts.short_waits},
          {"short_wait_ns", profile.counts.short_wait_ns},
          {"own_cpu_ns", profile.cpu_ns},
          {"bpf_ns", profile.counts.bpf_ns},
          {"frames", hottest.frames},
          {"unknown_frames", hottest.unknown_frames},
          {"truncated", hottest.truncated},
          {"functions", std::move(functions)}};
}

// What is profiled, as the title of the page.
std::string title_of(const ProfileArguments& arguments) {
  if (arguments.all) return "All processes";
  if (!arguments.cgroup.empty()) return arguments.cgroup;
  if (!arguments.job.empty()) return arguments.job;
  if (arguments.pid != 0) return "Process " + std::to_string(arguments.pid);
  std::string words;
  for (const std::string& word : arguments.command) words += (words.empty() ? "" : " ") + word;
  return words;
}

// The stacks in the format of the file; of a page its data.
std::string content_of(const ProfileArguments& arguments, const stacks::Profile& profile,
                       const stacks::Hottest& hottest, stacks::Symbols& symbols) {
  if (const Write write = format_of(arguments.output)) return write(profile, symbols);
  if (!is_page(arguments.output)) return {};
  nlohmann::ordered_json about = json_of(profile, hottest, 0);
  about["title"] = title_of(arguments);
  return report::flame_data(std::move(about), stacks::frame_tree(profile, symbols));
}

// The files of the modules in the profile, from which their names are read.
std::vector<int> descriptors_of(const stacks::Profile& profile) {
  std::set<int> files;
  for (const auto& [trace, weight] : profile.traces) {
    for (const stacks::Frame& frame : trace.frames) {
      if (frame.module != nullptr && frame.module->file.valid()) {
        files.insert(frame.module->file.get());
      }
    }
  }
  return {files.begin(), files.end()};
}

// What to print and what to write; empty if that failed. The names are read from files of other
// users' programs, in a process without rights.
std::vector<std::string> make(const ProfileArguments& arguments, const stacks::Profile& profile,
                              bool debug_info, Context& context) {
  return make_confined(
      context, {"/usr/lib/debug/.build-id"}, 2,
      [&](std::vector<std::string>& texts) {
        stacks::Symbols symbols(debug_info);
        const stacks::Hottest hottest =
            stacks::hottest(profile, symbols, order_of(arguments, profile.waits));
        texts[0] = context.json
                       ? json_text(json_of(profile, hottest, arguments.rows), 2) + "\n"
                       : summary_text(profile, hottest) + table_text(hottest, arguments.rows);
        texts[1] = content_of(arguments, profile, hottest, symbols);
      },
      descriptors_of(profile));
}

// Debugging information that is damaged can end the process that reads it. The profile is not lost.
void print_and_write(const ProfileArguments& arguments, const stacks::Profile& profile,
                     std::FILE* to, Context& context) {
  std::vector<std::string> made = make(arguments, profile, true, context);
  if (made[0].empty()) {
    say("the debugging information of a program could not be read: inlined functions have no "
        "names");
    context.exit_code = 0;
    made = make(arguments, profile, false, context);
  }
  if (made[0].empty()) return;
  if (!context.quiet) std::fputs(made[0].c_str(), to);
  if (arguments.output.empty()) return;
  const Result<std::string> content =
      is_page(arguments.output) ? report::flame_page(made[1]) : std::move(made[1]);
  if (!content) return fail(context, content.error());
  if (const Result<void> written = replace_file(arguments.output, *content); !written) {
    return fail(context, written.error());
  }
  if (!context.quiet) {
    std::fprintf(stderr, "written to %s\n", report::printable(arguments.output).c_str());
  }
}

void profile_a_command(const ProfileArguments& arguments, Context& context) {
  Result<stacks::CommandProfile> done =
      stacks::profile_command(arguments.command, arguments.options);
  if (!done) {
    fail(context, done.error());
    if (done.error().message.starts_with("cannot run ")) {
      context.exit_code = done.error().errno_value == ENOENT ? kNotFound : kCannotRun;
    }
    return;
  }
  print_and_write(arguments, done->profile, stderr, context);
  if (done->exit_code != 0) context.exit_code = done->exit_code;
}

Result<pid_t> pid_of_job(const Context& context, const std::string& name) {
  Result<client::Client> client = client::Client::connect(context.socket);
  if (!client) return client.error();
  const Result<v1::InspectResponse> seen = client->inspect(name);
  client::end_threads();
  if (!seen) return seen.error();
  if (seen->has_job() && seen->job().state() == v1::Job::RUNNING) return seen->job().pid();
  return Error{Code::failed_precondition,
               "cannot profile " + name + ": it is no job that runs; see kymo ps"};
}

// Sets what is profiled, and for how long.
Result<void> choose_target(ProfileArguments& arguments, const Context& context) {
  stacks::Options& options = arguments.options;
  constexpr std::chrono::seconds kUsual{10};
  if (!options.duration) options.duration = kUsual;
  if (arguments.all) return {};
  Result<stacks::Target> target = stacks::Target{};
  if (!arguments.cgroup.empty()) {
    target = stacks::cgroup_at(arguments.cgroup);
  } else {
    const Result<pid_t> pid =
        arguments.job.empty() ? arguments.pid : pid_of_job(context, arguments.job);
    if (!pid) return pid.error();
    options.until_end_of = *pid;
    target = stacks::tree_of(*pid);
  }
  if (!target) return target.error();
  options.sampling.target = *std::move(target);
  return {};
}

void profile_what_runs(ProfileArguments& arguments, Context& context) {
  if (const Result<void> chosen = choose_target(arguments, context); !chosen) {
    fail(context, chosen.error());
    if (chosen.error().code == Code::invalid_argument) context.exit_code = kWrongUsage;
    return;
  }
  const Result<stacks::Profile> profile = stacks::profile_running(arguments.options);
  if (!profile) return fail(context, profile.error());
  print_and_write(arguments, *profile, stdout, context);
}

// A profile must not be lost because of a wrong name.
Result<void> check_output(const std::string& output) {
  if (output.empty()) return {};
  if (format_of(output) == nullptr && !is_page(output)) {
    return Error{Code::invalid_argument,
                 output +
                     ": give a file that ends in .html (a flame graph), in .pb.gz or .pprof (for "
                     "pprof), or in .folded or .txt (stacks for other flame graphs)"};
  }
  if (is_page(output)) {
    if (const Result<report::Page> page = report::Page::begin({}); !page) return page.error();
  }
  const std::string folder = std::filesystem::path(absolute_path(output)).parent_path();
  if (::access(folder.c_str(), W_OK | X_OK) == 0) return {};
  return system_error("cannot write into " + folder, errno);
}

void profile(ProfileArguments& arguments, Context& context) {
  const int targets = (arguments.command.empty() ? 0 : 1) + (arguments.pid != 0 ? 1 : 0) +
                      (arguments.all ? 1 : 0) + (arguments.cgroup.empty() ? 0 : 1) +
                      (arguments.job.empty() ? 0 : 1);
  if (targets != 1) {
    return refuse_profile(
        context, "name one of: -p PID, -a, --cgroup PATH, --name JOB, or a command after --");
  }
  if (const Result<void> checked = check_output(arguments.output); !checked) {
    if (checked.error().code == Code::invalid_argument) {
      return refuse_profile(context, checked.error().message);
    }
    return fail(context, checked.error());
  }
  if (arguments.command.empty()) return profile_what_runs(arguments, context);
  profile_a_command(arguments, context);
}

void add_time(CLI::App& verb, const char* name, const char* help,
              const std::function<void(double ns)>& set) {
  const std::string long_name = std::string(name).substr(std::string(name).find("--"));
  verb.add_option_function<std::string>(
          name,
          [long_name, set](const std::string& text) {
            set(nanoseconds_of(long_name, text, "give a shorter one"));
          },
          help)
      ->option_text("TIME (us, ms, s, m, h)");
}

}  // namespace

void add_profile(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<ProfileArguments>();
  stacks::Sampling& sampling = arguments->options.sampling;
  CLI::App* verb = app.add_subcommand(
      "profile", "Find the functions in which running programs use CPU time, or wait");
  verb->fallthrough();
  verb->add_option("-p,--pid", arguments->pid, "PID of a running process, with its descendants")
      ->check(CLI::Range(1, 1 << 22));
  verb->add_flag("-a,--all", arguments->all, "All processes of the machine, and the kernel");
  verb->add_option("--cgroup", arguments->cgroup, "Folder of a cgroup, with those below it");
  verb->add_option("--name", arguments->job, "Name or id of a job of kymod");
  add_time(*verb, "-d,--duration",
           "Stop after this time (default: 10s; a command is profiled until it ends)",
           [arguments](double ns) {
             arguments->options.duration = std::chrono::milliseconds(std::llround(ns / 1e6) + 1);
           });
  verb->add_option("-r,--rate", sampling.rate, "Samples of each CPU a second")
      ->check(CLI::Range(19U, 999U))
      ->capture_default_str();
  verb->add_flag("--off-cpu", sampling.waits, "Find where threads wait, instead of CPU time");
  add_time(*verb, "--shortest-wait",
           "With --off-cpu: only sum waits that are shorter than this (default: 100us)",
           [&sampling](double ns) { sampling.shortest_wait_ns = static_cast<std::uint64_t>(ns); });
  verb->add_option("-o,--output", arguments->output,
                   "Also write the stacks to this file: .html for a flame graph, .pb.gz or .pprof "
                   "for pprof, .folded or .txt for other flame graphs");
  verb->add_option("--rows", arguments->rows, "Print this many functions")->capture_default_str();
  verb->add_option("--sort", arguments->sort,
                   "Order of the functions: self or total (default: self; of waits: total)")
      ->check(CLI::IsMember({"self", "total"}));
  add_quiet_option(*verb, context);
  verb->add_flag("--json", context.json, "Print JSON");
  verb->add_option("command", arguments->command, "After --: a command to run and profile");
  verb->callback([arguments, &context] { profile(*arguments, context); });
}

}  // namespace kymo::cli
