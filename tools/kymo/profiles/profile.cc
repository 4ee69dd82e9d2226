#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/json_text.h"
#include "client/client.h"
#include "confined.h"
#include "lens/report/flame_page.h"
#include "lens/report/human.h"
#include "lens/report/stack_summary.h"
#include "print.h"
#include "profiler/stacks/frame_tree.h"
#include "profiler/stacks/naming_plan.h"
#include "profiler/stacks/output.h"
#include "profiler/stacks/session.h"
#include "profiles/profile_file.h"
#include "profiles/profile_text.h"
#include "time_option.h"
#include "verbs.h"

namespace kymo::cli {
namespace {

struct ProfileArguments {
  std::vector<std::string> command;
  int pid = 0;
  bool all = false;
  std::string cgroup;
  std::string job;
  std::vector<std::string> files;
  std::string checkpoints;  // of this job
  std::string phase;
  std::string value;  // of the files
  stacks::Options options;
  std::string output;
  std::size_t rows = 20;
  std::string sort;
};

void refuse_profile(Context& context, const std::string& why) {
  say("profile: " + why + " (see kymo profile --help)");
  context.exit_code = kWrongUsage;
}

// What is profiled, as the title of the page.
std::string title_of(const ProfileArguments& arguments) {
  if (arguments.all) return "All processes";
  if (!arguments.files.empty()) {
    return arguments.files.size() == 1 ? arguments.files[0]
                                       : std::to_string(arguments.files.size()) + " profiles";
  }
  if (!arguments.cgroup.empty()) return arguments.cgroup;
  if (!arguments.job.empty()) return arguments.job;
  if (!arguments.checkpoints.empty()) return "Checkpoints of " + arguments.checkpoints;
  if (arguments.pid != 0) return "Process " + std::to_string(arguments.pid);
  std::string words;
  for (const std::string& word : arguments.command) words += (words.empty() ? "" : " ") + word;
  return words;
}

// The data of the page.
std::string page_data(const ProfileArguments& arguments, const Taken& taken,
                      const stacks::Hottest& hottest, const stacks::NamedProfile& profile) {
  nlohmann::ordered_json about = profile_json(taken, hottest, 0);
  about["title"] = title_of(arguments) + (arguments.phase.empty() ? "" : ": " + arguments.phase);
  return report::flame_data(std::move(about), stacks::frame_tree(profile));
}

// Makes what is printed and, if the file is a page, its data.
void describe(const ProfileArguments& arguments, const Taken& taken,
              const stacks::NamedProfile& profile, std::vector<std::string>& texts,
              const Context& context) {
  const stacks::Hottest hottest =
      stacks::hottest(profile, order_of(arguments.sort, profile.quantity));
  texts[0] = context.json ? json_text(profile_json(taken, hottest, arguments.rows), 2) + "\n"
                          : profile_summary(taken, hottest) +
                                profile_table(profile.quantity, hottest, arguments.rows);
  if (profile_format(arguments.output) == ProfileFormat::page) {
    texts[1] = page_data(arguments, taken, hottest, profile);
  }
}

// What to print and what to write; empty if that failed. The names are read from files of other
// users' programs, in a process without rights.
std::vector<std::string> make(const ProfileArguments& arguments, const stacks::Profile& profile,
                              stacks::NamingPlan& plan, Context& context) {
  return make_confined(
      context, {"/usr/lib/debug/.build-id"}, 2,
      [&](std::vector<std::string>& texts) {
        stacks::Symbols symbols(&plan);
        const Taken taken{profile.waits ? stacks::Quantity::wait : stacks::Quantity::cpu,
                          profile.period_ns, profile.duration_ns, profile.cpu_ns, profile.counts};
        describe(arguments, taken, stacks::named(profile, symbols), texts, context);
        const ProfileFormat format = profile_format(arguments.output);
        if (format == ProfileFormat::pprof) texts[1] = stacks::pprof(profile, symbols);
        if (format == ProfileFormat::folded) texts[1] = stacks::folded(profile, symbols);
      },
      plan.files());
}

// Prints and writes what was made.
void finish(const ProfileArguments& arguments, std::vector<std::string> made, std::FILE* to,
            Context& context) {
  if (!context.quiet) std::fputs(made[0].c_str(), to);
  if (!arguments.output.empty()) write_profile(arguments.output, std::move(made[1]), context);
}

// Why there are no stacks, and how to see more. Nothing if there are some, or if all were lost.
void explain_empty(const stacks::Profile& profile, const Context& context) {
  if (context.quiet || !profile.traces.empty() || profile.counts.lost != 0) return;
  if (!profile.waits) {
    say("no samples: what was profiled used hardly any CPU time; --off-cpu shows where threads "
        "wait");
  } else if (profile.counts.short_waits != 0) {
    say("no samples: all waits were shorter than --shortest-wait");
  } else {
    say("no samples: no thread began to wait in this time");
  }
}

// A file that is damaged can end the process that reads it. The profile is not lost.
void print_and_write(const ProfileArguments& arguments, const stacks::Profile& profile,
                     std::FILE* to, Context& context) {
  explain_empty(profile, context);
  stacks::NamingPlan plan(profile);
  for (;;) {
    const int exit_code = context.exit_code;
    std::vector<std::string> made = make(arguments, profile, plan, context);
    if (!made[0].empty()) return finish(arguments, std::move(made), to, context);
    if (!plan.read_less()) return;
    context.exit_code = exit_code;
    say(plan.left_out());
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
  Result<stacks::Profiled> target = stacks::Profiled{};
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

// Reads the files, and adds their stacks.
Result<stacks::NamedProfile> read_files(const std::vector<std::string>& files,
                                        const std::string& value) {
  std::optional<stacks::NamedProfile> all;
  for (const std::string& path : files) {
    Result<stacks::NamedProfile> one = read_profile(path, value);
    if (!one) return one.error();
    if (!all) {
      all = *std::move(one);
    } else if (const Result<void> added = stacks::add(*all, *one); !added) {
      return Error{added.error().code, path + ": " + added.error().message};
    }
  }
  return *std::move(all);
}

// A file tells only if samples were lost.
std::optional<stacks::SourceCounts> counts_of(const stacks::NamedProfile& profile) {
  if (profile.lost == 0) return std::nullopt;
  stacks::SourceCounts counts;
  counts.lost = profile.lost;
  return counts;
}

// Reads the stack profiles in the directories of checkpoints, and adds their stacks.
Result<stacks::NamedProfile> read_checkpoints(const std::vector<std::string>& directories,
                                              const std::string& job) {
  std::optional<stacks::NamedProfile> all;
  for (const std::string& directory : directories) {
    const std::string folder = directory + "/recordings";
    for (const std::string& name : report::stack_profiles_in(folder)) {
      Result<stacks::NamedProfile> one = report::read_stacks(folder, name);
      const Result<void> added = !one  ? one.error()
                                 : all ? stacks::add(*all, *one)
                                       : Result<void>();
      if (!added) {
        say(report::printable(added.error().message));
      } else if (!all) {
        all = *std::move(one);
      }
    }
  }
  if (all) return *std::move(all);
  return Error{Code::not_found, "no checkpoint of " + job +
                                    " has a stack profile that can be read: start kymod with "
                                    "--profiling-stacks before the dump"};
}

Result<std::vector<std::string>> checkpoints_of(const Context& context, const std::string& job) {
  Result<client::Client> client = client::Client::connect(context.socket);
  if (!client) return client.error();
  const Result<v1::InspectResponse> seen = client->inspect(job);
  client::end_threads();
  if (!seen) return seen.error();
  if (!seen->has_job()) {
    return Error{Code::failed_precondition, "--checkpoints " + job + ": it is no job; see kymo ps"};
  }
  std::vector<std::string> directories;
  for (const v1::Checkpoint& one : seen->checkpoints()) directories.push_back(one.directory());
  return directories;
}

// Shows what `read` finds in these files and folders. They are of unknown origin: they are read in
// a process without rights.
void show(const ProfileArguments& arguments, const std::vector<std::string>& paths,
          const std::function<Result<stacks::NamedProfile>()>& read, Context& context) {
  std::vector<std::string> made =
      make_confined(context, paths, 2, [&](std::vector<std::string>& texts) {
        const Result<stacks::NamedProfile> profile = chosen_part(read(), arguments.phase);
        if (!profile) return fail(context, profile.error());
        const Taken taken{profile->quantity, profile->period_ns, profile->duration_ns, 0,
                          counts_of(*profile)};
        describe(arguments, taken, *profile, texts, context);
        const ProfileFormat format = profile_format(arguments.output);
        if (format == ProfileFormat::pprof) texts[1] = stacks::pprof(*profile, 0);
        if (format == ProfileFormat::folded) texts[1] = stacks::folded(*profile);
      });
  if (!made[0].empty()) finish(arguments, std::move(made), stdout, context);
}

void show_checkpoints(const ProfileArguments& arguments, Context& context) {
  const std::string& job = arguments.checkpoints;
  const Result<std::vector<std::string>> directories = checkpoints_of(context, job);
  if (!directories) return fail(context, directories.error());
  show(
      arguments, *directories, [&] { return read_checkpoints(*directories, job); }, context);
}

void profile(ProfileArguments& arguments, Context& context) {
  const int targets = (arguments.command.empty() ? 0 : 1) + (arguments.pid != 0 ? 1 : 0) +
                      (arguments.all ? 1 : 0) + (arguments.cgroup.empty() ? 0 : 1) +
                      (arguments.job.empty() ? 0 : 1) + (arguments.files.empty() ? 0 : 1) +
                      (arguments.checkpoints.empty() ? 0 : 1);
  if (targets != 1) {
    return refuse_profile(
        context,
        "name one of: -p PID, -a, --cgroup PATH, --name JOB, --from FILE, --checkpoints JOB, or a "
        "command after --");
  }
  if (!arguments.phase.empty() && arguments.files.empty() && arguments.checkpoints.empty()) {
    return refuse_profile(context, "--phase is for --from and --checkpoints");
  }
  if (!arguments.value.empty() && arguments.files.empty()) {
    return refuse_profile(context, "--value is for --from");
  }
  if (const Result<void> checked = check_profile_output(arguments.output); !checked) {
    if (checked.error().code == Code::invalid_argument) {
      return refuse_profile(context, checked.error().message);
    }
    return fail(context, checked.error());
  }
  if (!arguments.files.empty()) {
    return show(
        arguments, arguments.files, [&] { return read_files(arguments.files, arguments.value); },
        context);
  }
  if (!arguments.checkpoints.empty()) return show_checkpoints(arguments, context);
  if (arguments.command.empty()) return profile_what_runs(arguments, context);
  profile_a_command(arguments, context);
}

void add_time(CLI::App& verb, const char* name, const char* help, NoUnit no_unit,
              const std::function<void(double ns)>& set) {
  const std::string long_name = std::string(name).substr(std::string(name).find("--"));
  verb.add_option_function<std::string>(
          name,
          [long_name, no_unit, set](const std::string& text) {
            set(nanoseconds_of(long_name, text, "give a shorter one", no_unit));
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
  verb->add_option(
          "--from", arguments->files,
          "Show this profile in the format of pprof instead of taking one; given more than "
          "once, their sum")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  verb->add_option("--checkpoints", arguments->checkpoints,
                   "Show the sum of the stack profiles that kymod --profiling-stacks has written "
                   "in the checkpoints of this job");
  verb->add_option("--phase", arguments->phase,
                   "With --from and --checkpoints: only the samples of this phase of a dump or "
                   "restore");
  add_value_option(*verb, arguments->value);
  add_time(*verb, "-d,--duration",
           "Stop after this time (default: 10s; a command is profiled until it ends)",
           NoUnit::is_seconds, [arguments](double ns) {
             arguments->options.duration = std::chrono::milliseconds(std::llround(ns / 1e6) + 1);
           });
  verb->add_option("-r,--rate", sampling.rate, "Samples of each CPU a second")
      ->check(CLI::Range(19U, 999U))
      ->capture_default_str();
  verb->add_flag("--off-cpu", sampling.waits, "Find where threads wait, instead of CPU time");
  add_time(*verb, "--shortest-wait",
           "With --off-cpu: count waits that are shorter than this, but take no stack of them "
           "(default: 100us)",
           NoUnit::is_refused,
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
