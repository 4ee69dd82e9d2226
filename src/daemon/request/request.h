#pragma once

#include <spdlog/spdlog.h>

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/json_text.h"
#include "base/spawn.h"
#include "checkpoint/diagnosis/phases.h"
#include "checkpoint/diagnosis/verdict.h"
#include "checkpoint/failures/explain.h"
#include "checkpoint/runtimes/shared/runtime.h"
#include "daemon/database/store.h"
#include "daemon/request/deadline.h"
#include "daemon/request/handover.h"
#include "daemon/request/inside_view.h"
#include "daemon/request/parts.h"
#include "daemon/request/pipeline.h"
#include "daemon/request/run_record.h"
#include "daemon/request/running_request.h"
#include "daemon/state/kinds.h"
#include "daemon/state/stats_json.h"
#include "kymo/result.h"
#include "kymo/scope.h"

namespace kymo::daemon {

// What a dump and a restore have in common: clocks, progress, recording, warnings. Each of them
// derives its context from this, adds what it needs, and runs its steps with run_request().
//
// Threads:   the thread that runs the request; the functions of observer() also on the threads that
//            watch CRIU.
// Ownership: refers to the parts, the timing tree and the handover.
struct Request {
  Request(const Parts& all, store::RunKind what, const ScopeTree* tree,
          std::shared_ptr<RequestProgress> shown, Handover& to_caller)
      : parts(all),
        kind(what),
        timing(tree),
        handover(to_caller),
        seen(all.progress, all.metrics, std::move(shown)),
        progress(seen.progress()) {}

  const Parts& parts;
  const store::RunKind kind;
  const ScopeTree* const timing;  // null: the request is not timed
  Handover& handover;
  RunningRequest seen;
  RequestProgress& progress;
  const std::uint64_t began_ns = monotonic_ns();
  const std::int64_t began_unix_ns = unix_ns();
  runtime::CriuProgram criu;  // set once it is chosen
  std::optional<store::Job> job;
  InsideView inside;
  RequestRecording recording;
  std::vector<StackCollectors::Running>
      stacks;                        // of CPU time, and of waits, if they were asked for
  std::string no_stacks;             // why, if they were asked for and are not taken
  std::uint64_t stacks_wait_ns = 0;  // how long the request waited for them
  bool counts = true;                // false: it leaves nothing, in the metrics either
  bool begun = false;                // the runtime was called
  bool first_run = false;            // the first of its kind since kymod started
  std::vector<std::string> warnings;
  std::vector<std::string> scripts;  // that CRIU runs besides kymod's, if kymod starts it
  std::string_view step;             // the last one that began
  diagnosis::Verdict verdict;        // no lines: the request was refused, or is not over
  // phases() when the outcome was known, which is saved from then on. Empty: it is not known yet.
  std::vector<diagnosis::Phase> concluded;
  diagnosis::Autogroup target_group;  // of a dump, as it was before
  diagnosis::Quota target_quota;      // the same
  // What CRIU has reported, for phases(). The mutex guards `times` while CRIU runs.
  mutable std::mutex times_mutex;
  diagnosis::RequestTimes times;
  criu::LogPhases log;
  std::optional<criu::Streamed> streamed;  // what kymod's thread did for a stream

  [[nodiscard]] std::uint64_t duration_ns() const { return monotonic_ns() - began_ns; }
  // Makes a warning of an error that must not change the outcome of the request.
  void warn_unless(const Result<void>& done);
  // Begins the recording at `path`. A request without a recording is better than no request, so an
  // error is only a warning.
  // `restored`: the pids that a restore will make, if they are known.
  void begin_recording(std::string path, nlohmann::json about, const inside::Observed& target,
                       std::vector<pid_t> restored = {});
  // Ends the recording. `about` is added to what is known of every request.
  void end_recording(const Result<void>& result, nlohmann::json about);
  // Notes that the runtime is called now. Returns an observer that reports CRIU's notifications.
  // Errors: those of Handover::enter_runtime().
  Result<runtime::Observer> runtime_called();
  // kymod begins to do this while CRIU waits for its answer: the name of a phase. Empty: it has done it.
  void working(std::string_view what);
  // A step begins. The same errors.
  [[nodiscard]] Result<void> may_begin(std::string_view name) {
    step = name;
    return handover.may_go_on();
  }
  // Where the time went from the beginning of the request until now.
  [[nodiscard]] std::vector<diagnosis::Phase> phases() const;
  // Says why a request took so long, unless it was refused. If its time was too short, or somebody did not want to
  // wait for it any longer, its error says so, too. `facts` has what only a dump or only a restore knows. `images`:
  // their folder. Asks no disk if the request did not succeed.
  void explain(Result<void>& result, diagnosis::Facts facts, const std::string& images);
  // The outcome is final. Only saving it is left to do.
  void ended(const Result<void>& result);
  // Adds the timing tree, if there is one, to a JSON object.
  void add_timing(nlohmann::json& object) const;

 private:
  void start_stacks(const std::string& recording_path, const inside::Observed& target,
                    std::vector<pid_t> restored);
  void wait_for_stacks();
  void end_stacks(const std::vector<diagnosis::Phase>& all);
};

// The members of a run that every request fills in the same way.
template <class Outcome>
store::Run common_run(const Request& request, const Result<void>& result, const Outcome& outcome) {
  store::Run run;
  run.kind = request.kind;
  run.created_unix_ns = request.began_unix_ns;
  if (!result) {
    run.error = result.error().message;
    run.failure = failures::of_error(result.error()).id;
  }
  run.duration_ns = request.duration_ns();
  run.warmth = warmth_of(request.first_run, outcome.criu_major_faults);
  if (outcome.stats) run.stats_json = json_text(to_json(*outcome.stats));
  for (const std::string& line : request.verdict.lines) run.verdict += line + '\n';
  run.phases_json = history_phases(request.concluded.empty() ? request.phases() : request.concluded,
                                   request.verdict, request.kind == store::RunKind::restore);
  return run;
}

// The fields of a response that every request fills in the same way.
template <class Response, class Outcome>
void fill_response(Response& response, const Request& request, const Outcome& outcome,
                   runtime::Kind kind, const std::string& container) {
  if (request.job) response.set_job(request.job->name);
  response.set_recording(request.recording.path());
  if (outcome.stats) *response.mutable_stats() = to_api(*outcome.stats);
  response.set_criu_time_ns(outcome.criu_time_ns);
  response.set_command_time_ns(outcome.command_time_ns);
  response.set_runtime_time_ns(outcome.runtime_time_ns);
  response.set_podman_time_ns(outcome.podman_time_ns);
  response.set_runtime(to_api(kind));
  response.set_container(container);
  for (const std::string& warning : request.warnings) response.add_warnings(warning);
  const std::vector<diagnosis::Phase> phases = request.phases();
  for (const diagnosis::Phase& phase : phases) *response.add_phases() = to_api(phase);
  for (const std::string& line : request.verdict.lines) response.add_verdict(line);
  response.set_verdict_causes_from(static_cast<std::uint32_t>(request.verdict.causes_from));
  response.set_duration_ns(phases.empty() ? request.duration_ns() : phases.back().end_ns);
}

// A request on a thread of its own, and the caller that waits for it. It lives until both are done.
template <class Asked, class Response>
struct Shared {
  Shared(const Parts& all, Asked request, std::shared_ptr<ScopeTree> tree, std::string tried)
      : parts(all),
        asked(std::move(request)),
        timing(std::move(tree)),
        handover(std::move(tried)) {}

  const Parts parts;
  const Asked asked;
  const std::shared_ptr<ScopeTree> timing;
  std::shared_ptr<RequestProgress> progress;
  Handover handover;
  std::mutex mutex;
  std::optional<Result<Response>>
      answer;  // guarded by mutex; set in Handover::Stage::known and ended

  void set_answer(Result<Response> is) {
    const std::lock_guard lock(mutex);
    answer = std::move(is);
  }
  Result<Response> take_answer() {
    const std::lock_guard lock(mutex);
    return *std::move(answer);
  }
};

// The steps, on the thread of the request.
template <class Context, class Both, class Steps>
void work_off(Both& shared, const Steps& steps) {
  Context context(shared.parts, shared.asked, shared.timing.get(), shared.progress,
                  shared.handover);
  const auto answer = [&](const Result<void>& result) {
    shared.set_answer(result ? decltype(shared.take_answer())(response_of(context))
                             : result.error());
  };
  Result<void> result = run_steps(steps, context);
  const auto explain = [&] {
    if (context.counts) context.explain(result, facts_of(context, result), images_of(context));
  };
  if (!result) explain();
  context.ended(result);
  measure(context);
  answer(result);
  context.handover.known();
  {
    const Scope scope("conclude", {.category = "request"});
    if (result) explain();
    answer(result);  // saving may wait for a disk longer than the caller does
    conclude(context, result);
  }
  for (const std::string& warning : context.warnings) spdlog::warn("{}", warning);
  answer(result);
}

// What is measured before the outcome is known, for a request that measures nothing then.
inline void measure(Request&) {}

// The warning of an answer that does not wait until all is saved.
std::string unsaved_warning();

// The answer of a request that its caller has left in this stage.
Error left_error(const Handover& handover, Handover::Stage stage, store::RunKind kind, Code why);

// Runs a request from its first step to its response. It runs on a thread of its own, and is answered without it if a
// disk does not answer (Handover).
//
// `Context` derives from Request, is made from the parts, the API's request, the timing tree, the progress and the
// handover, and has beside it: facts_of(context, result) and images_of(context) for Request::explain(),
// measure(context), conclude(context, result), which saves how the request ended, and response_of(context).
// `tried`: what is tried, for errors. `timing` may be null.
// Errors: that of the first step that failed; those of ProgressBoard::begin(); left_error().
template <class Context, class Asked, std::size_t N>
auto run_request(const Parts& parts, const Asked& asked, std::shared_ptr<ScopeTree> timing,
                 v1::Progress::Kind kind, std::string tried,
                 const std::array<Step<Context>, N>& steps)
    -> Result<decltype(response_of(std::declval<const Context&>()))> {
  using Response = decltype(response_of(std::declval<const Context&>()));
  auto shared = std::make_shared<Shared<Asked, Response>>(parts, asked, std::move(timing), tried);
  Result<std::shared_ptr<RequestProgress>> progress =
      parts.progress.begin(kind, asked.request_id());
  if (!progress) return progress.error();
  shared->progress = *std::move(progress);
  const DiskWait time(&shared->progress->cancellation(), deadline_from_now(asked.deadline_ns()));
  Result<void> started = parts.progress.run_thread([shared, &steps] {
    const LastingStarter starter;  // of all programs of this request
    std::optional<EnterScope> here;
    if (shared->timing != nullptr) here.emplace(*shared->timing);
    try {
      work_off<Context>(*shared, steps);
    } catch (const std::exception& error) {
      shared->set_answer(Error{Code::internal, shared->handover.tried() + ": " + error.what()});
    }
    shared->handover.ended();
  });
  if (!started) {
    parts.progress.end(shared->progress, started);
    return started.error();
  }
  const Handover::Stage stage = shared->handover.wait(time);
  if (stage != Handover::Stage::ended) shared->progress->note_left();
  if (stage == Handover::Stage::ended) return shared->take_answer();
  if (stage == Handover::Stage::known) {
    Result<Response> answer = shared->take_answer();
    if (answer) answer->add_warnings(unsaved_warning());
    return answer;
  }
  const store::RunKind run =
      kind == v1::Progress::DUMP ? store::RunKind::dump : store::RunKind::restore;
  const Error error = left_error(shared->handover, stage, run, time.code());
  if (stage == Handover::Stage::before) parts.progress.end(shared->progress, error);
  return error;
}

}  // namespace kymo::daemon
