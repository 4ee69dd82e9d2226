#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "checkpoint/inside/source.h"
#include "kymo/result.h"
#include "lens/report/timing.h"

namespace kymo::cli {

// The exit code for wrong usage, also for errors that CLI11 finds.
constexpr int kWrongUsage = 2;

// The exit code of a comparison without a clear result.
constexpr int kCannotTell = 3;
// The exit code of a verb that was asked for a verdict (--fail-on-...) and failed: there, 1 means a change. As in
// diff(1), cmp(1) and grep(1).
constexpr int kNoVerdict = 2;

// The exit codes if a command cannot be run, as in a shell.
constexpr int kCannotRun = 126;
constexpr int kNotFound = 127;

// How the timing of a request is shown.
struct TimingOptions {
  bool enabled = true;
  bool asked = false;  // --profiling was given
  bool detailed = false;
  report::Precision precision = report::Precision::automatic;
  std::string path;  // a JSON file to write; empty: none
};

// What the verbs share. The add_ function of a verb describes its options to CLI11. Its callback
// does the work and sets the exit code here: 0 good, 1 failed, 2 wrong usage, 3 cannot tell.
struct Context {
  std::string socket = "/run/kymo/kymod.sock";
  bool json = false;
  TimingOptions timing;
  std::string progress = "auto";    // --progress
  bool verbose = false;             // -v: print all that is known
  bool quiet = false;               // -q: print errors and warnings only
  bool wait_for_recording = false;  // --wait-for-recording
  int exit_code = 0;
  int failed_code = 1;  // what fail() makes of exit_code
};

// Adds -v, --verbose.
inline void add_verbose_option(CLI::App& verb, Context& context) {
  verb.add_flag("-v,--verbose", context.verbose,
                "Print all that is known: the phases, CRIU's statistics, the time of each step");
}

// Adds -q, --quiet.
inline void add_quiet_option(CLI::App& verb, Context& context) {
  verb.add_flag("-q,--quiet", context.quiet, "Print nothing but errors and warnings");
}

struct Verb {
  std::string_view name;
  void (*add)(CLI::App& app, Context& context);
  std::string_view group = "Verbs";  // its heading in the help
};

// The verbs of this program, in the order of the help, and the options that they share. There are
// two implementations: all_verbs.cc, and reading_verbs.cc for a kymo without gRPC.
std::span<const Verb> verbs();
// What a BPF program counts of a process. Errors: those of inside::bpf_source_of_process();
// unimplemented.
Result<std::unique_ptr<inside::Source>> bpf_source_of(int pid);
void add_common_options(CLI::App& app, Context& context);

void add_run(CLI::App& app, Context& context);
void add_adopt(CLI::App& app, Context& context);
void add_dump(CLI::App& app, Context& context);
void add_freeze(CLI::App& app, Context& context);
void add_restore(CLI::App& app, Context& context);
void add_ps(CLI::App& app, Context& context);
void add_metrics(CLI::App& app, Context& context);
void add_report(CLI::App& app, Context& context);
void add_export(CLI::App& app, Context& context);
void add_record(CLI::App& app, Context& context);
void add_profile(CLI::App& app, Context& context);
void add_profiles(CLI::App& app, Context& context);
void add_recover(CLI::App& app, Context& context);
void add_watch(CLI::App& app, Context& context);
void add_check(CLI::App& app, Context& context);
void add_diff(CLI::App& app, Context& context);
void add_explain(CLI::App& app, Context& context);
void add_stats(CLI::App& app, Context& context);
void add_attach(CLI::App& app, Context& context);
void add_verify(CLI::App& app, Context& context);
void add_delete(CLI::App& app, Context& context);
void add_inspect(CLI::App& app, Context& context);
void add_kill(CLI::App& app, Context& context);
void add_cancel(CLI::App& app, Context& context);
void add_release(CLI::App& app, Context& context);
void add_checkpoints(CLI::App& app, Context& context);
void add_history(CLI::App& app, Context& context);
void add_status(CLI::App& app, Context& context);
void add_recorder(CLI::App& app, Context& context);
void add_snapshot(CLI::App& app, Context& context);
void add_progress(CLI::App& app, Context& context);
void add_web(CLI::App& app, Context& context);
void add_view(CLI::App& app, Context& context);

}  // namespace kymo::cli
