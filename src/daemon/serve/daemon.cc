#include "daemon/serve/daemon.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/server_posix.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <future>
#include <memory>

#include "base/file.h"
#include "base/http/token_file.h"
#include "base/patience.h"
#include "checkpoint/criu/drive/client.h"
#include "checkpoint/runtimes/shared/killed_restore.h"
#include "checkpoint/runtimes/table.h"
#include "daemon/config/find_criu.h"
#include "daemon/recording/profile_keeper.h"
#include "daemon/recording/profiled_containers.h"
#include "daemon/request/parts.h"
#include "daemon/request/refusal.h"
#include "daemon/request/running_request.h"
#include "daemon/serve/build_info.h"
#include "daemon/serve/housekeeping.h"
#include "daemon/serve/otlp.h"
#include "daemon/serve/service.h"
#include "daemon/serve/unix_listener.h"
#include "daemon/state/asked_runtimes.h"
#include "daemon/state/cut_short.h"
#include "daemon/state/restore_note.h"
#include "daemon/state/state_dir.h"
#include "daemon/state/unbegun.h"
#include "daemon/stored/deletion.h"
#include "daemon/stored/job_output.h"
#include "daemon/stored/space_bound.h"
#include "daemon/web/web_api.h"
#include "kymo/prometheus.h"
#include "kymo/version.h"
#include "lens/report/human.h"
#include "recorder/sampling/recover/ring_aside.h"

namespace kymo::daemon {
namespace {

constexpr auto kDrain = std::chrono::seconds(60);
constexpr timespec kLookAfterJobs{1, 0};
// How long the start waits for what an earlier kymod has left: CRIU may take ten seconds to end.
constexpr auto kFirstLooks = std::chrono::seconds(15);

// When gRPC cancels the calls that still run at the stop, such as one whose client does not read.
std::chrono::system_clock::time_point end_of_calls() {
  return std::chrono::system_clock::now() + std::chrono::milliseconds(300);
}

sigset_t stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGUSR1);  // asks for a snapshot
  return set;
}

// The API for some callers.
struct Api {
  std::unique_ptr<Service> service;
  std::unique_ptr<grpc::Server> server;

  Result<void> start(const Parts& parts, OtlpExporter* spans, const http::Server& http,
                     Callers callers);
  void stop() {
    if (server != nullptr) server->Shutdown(end_of_calls());
  }
};

Result<void> Api::start(const Parts& parts, OtlpExporter* spans, const http::Server& http,
                        Callers callers) {
  service = std::make_unique<Service>(parts, spans, http, callers);
  grpc::ServerBuilder builder;
  builder.RegisterService(service.get());
  server = builder.BuildAndStart();
  if (server == nullptr) return Error{Code::internal, "cannot start the API: gRPC did not start"};
  return {};
}

}  // namespace

// The members are destroyed in reverse order, so a destructor may use the members above its own.
struct Daemon::State {
  Config config;
  FileDescriptor state_lock;
  std::unique_ptr<UnixListener> listener;
  std::unique_ptr<Metrics> metrics;
  std::optional<runtime::CriuChoice> crius;
  std::unique_ptr<OtlpExporter> spans;  // null: no --otlp-endpoint
  std::unique_ptr<Recorder> recorder;
  std::unique_ptr<store::Store> store;
  std::unique_ptr<Jobs> jobs;
  Claims<std::string> claims;
  std::unique_ptr<ProgressBoard> progress;
  FirstRuns first_runs;
  std::optional<ForeignFiles> foreign;
  std::shared_ptr<runtime::Runtimes> runtimes;
  std::optional<AskedRuntimes> asked;
  std::unique_ptr<UnconfirmedDumps> unconfirmed;
  StackCollectors stacks;
  KernelView kernel;
  std::optional<ProfileKeeper> profile_keeper;  // nothing: no --profiles
  std::optional<ProfiledContainers> profiled_containers;
  std::unique_ptr<http::Server> http;
  Api for_root;
  Api for_group;

  criu::ClientOptions criu_options() const;
  Result<void> open_store();
  Result<void> finish_deletions_soon();
  void make_runtimes();
  Result<void> move_ring_aside() const;
  Result<void> start_http();
  Result<void> start_spans();
  Parts parts();
  Result<void> start_api();
  bool drain();
  void check_stacks();
  void keep_profiles();
  void say_troubles() const;
  void snapshot_for_signal() const;
  void delete_old_checkpoints();

  SettleRestore settle_restore;
  std::vector<OpenRestore>
      open_restores;  // after the start, of the thread that deletes checkpoints
  std::uint64_t looks = 0;
  bool said_what_goes = false;
  std::string no_room;  // the last logged reason why no room could be made
};

criu::ClientOptions Daemon::State::criu_options() const {
  criu::ClientOptions options;
  options.path = config.criu;
  options.timeout = config.criu_timeout;
  options.called = [counts = metrics.get()](const criu::Call& call) {
    counts->criu_called(call, RunningRequest::on_this_thread());
  };
  return options;
}

Result<void> Daemon::State::open_store() {
  Result<std::unique_ptr<store::Store>> opened = store::Store::open(config.state_dir + "/kymo.db");
  if (!opened) return opened.error();
  store = std::move(opened).value();
  if (!store->moved_aside().empty()) spdlog::error("{}", store->moved_aside());
  make_runtimes();
  runtime::detach_roots_of_killed_restores();
  if (Result<void> ok = settle_unstarted_jobs(*store); !ok) return ok;
  const SettleDump settle = [this](runtime::Kind kind, const runtime::DumpSpec& spec) {
    return runtimes->of(kind).settle_dump(spec);
  };
  unconfirmed = std::make_unique<UnconfirmedDumps>(*store, *foreign, *metrics, claims, settle);
  unconfirmed->watch_all(kFirstLooks);
  if (Result<void> ok = remove_unlisted_folders(*store, config.state_dir); !ok) return ok;
  settle_old_scratch(*store);
  if (Result<void> ok = finish_deletions_soon(); !ok) return ok;
  jobs = std::make_unique<Jobs>(
      *store, *metrics, config.state_dir,
      [this](const ContainerOf& container) { return asked->process_of(container); });
  settle_restore = [this](runtime::Kind kind, const runtime::RestoreSpec& spec,
                          std::int64_t began_unix_ns) {
    return runtimes->of(kind).settle_restore(spec, began_unix_ns);
  };
  open_restores =
      settle_cut_short_restores(*store, *jobs, *metrics, claims, config.state_dir, settle_restore);
  jobs->refresh();
  continue_counts(*store, *metrics->outcomes());
  return {};
}

// A disk that stalls does not hold up the start.
Result<void> Daemon::State::finish_deletions_soon() {
  const auto done = std::make_shared<std::promise<Result<void>>>();
  std::future<Result<void>> result = done->get_future();
  Result<void> started = progress->run_thread([this, done] {
    done->set_value(finish_deletions(DeletionParts(*store, claims, config.state_dir, *foreign)));
  });
  if (!started) return started;
  if (result.wait_for(kFirstLooks) == std::future_status::ready) return result.get();
  spdlog::warn(
      "cannot finish deleting checkpoints that an earlier kymod began to delete: their disk "
      "does not answer yet");
  return {};
}

void Daemon::State::make_runtimes() {
  runtime::RuntimeSettings settings;
  settings.criu = criu_options();
  settings.exited = [this](const runtime::ProcessId& process, int wait_status) {
    jobs->exited(process, wait_status);
  };
  settings.criu_folder = crius->programs().front().folder;
  settings.timeout = config.criu_timeout;
  settings.runc_root = config.runc_root;
  settings.state_dir = config.state_dir;
  settings.podman_flags = config.podman_flags;
  runtimes = std::make_shared<runtime::Runtimes>(settings);
  asked.emplace(runtimes, config.runc_root);
}

// This kymod has the state directory for itself by now, so a ring that no recorder holds belongs to
// an earlier kymod.
Result<void> Daemon::State::move_ring_aside() const {
  if (config.profiling_ring.empty()) return {};
  const Result<std::string> aside = kymo::move_ring_aside(config.profiling_ring);
  if (!aside) {
    return Error{aside.error().code, "--profiling-ring: " + aside.error().message,
                 aside.error().errno_value};
  }
  if (!aside->empty()) {
    spdlog::warn(
        "a kymod that was killed left the ring {}: moved to {}; recover its rows with "
        "'kymo recover {}'",
        config.profiling_ring, *aside, *aside);
  }
  return {};
}

Result<void> Daemon::State::start_http() {
  const Result<HostPort> where = parse_host_port(config.http);
  if (!where) return where.error();
  Result<std::string> token = http::load_token(config.http_token_file);
  if (!token) {
    return Error{token.error().code, "--http-token-file: " + token.error().message,
                 token.error().errno_value};
  }
  http::Server::Options options;
  options.host = where->host;
  options.port = where->port;
  options.name = config.http_name;
  options.token = std::move(token).value();
  options.read_head = [&reader = *foreign](const std::string& request) {
    return reader.head(request);
  };
  http = std::make_unique<http::Server>(std::move(options));
  add_open_paths(*http, {make_prometheus_collectable(metrics->registry(), kPrometheusPrefix),
                         metrics->outcomes(), metrics->standstills(),
                         std::make_shared<BuildInfo>(crius->programs())});
  add_page_paths(*http, parts());
  return http->start();
}

Result<void> Daemon::State::start_spans() {
  if (config.otlp_endpoint.empty()) return {};
  Result<OtlpEndpoint> endpoint = parse_otlp_endpoint(config.otlp_endpoint);
  if (!endpoint) return endpoint.error();
  spans = std::make_unique<OtlpExporter>(
      std::move(endpoint).value(),
      [counts = metrics.get()](std::uint64_t sent, std::uint64_t dropped) {
        counts->spans_exported(sent, dropped);
      });
  return {};
}

Parts Daemon::State::parts() {
  return {config,     *metrics,  *recorder, *crius,       *runtimes, *store, *jobs,         claims,
          first_runs, *progress, *foreign,  *unconfirmed, stacks,    kernel, profile_keeper};
}

// gRPC does not tell a service who calls it, so each kind of caller has a service of its own.
Result<void> Daemon::State::start_api() {
  if (Result<void> ok = for_root.start(parts(), spans.get(), *http, Callers::root); !ok) return ok;
  if (!config.socket_group.empty()) {
    Result<void> ok = for_group.start(parts(), spans.get(), *http, Callers::group);
    if (!ok) return ok;
  }
  listener->serve([this](int fd, bool root) {
    grpc::AddInsecureChannelFromFd((root ? for_root : for_group).server.get(), fd);
  });
  return {};
}

// Refuses new requests, and waits for those that run. Returns false if some still run afterwards.
bool Daemon::State::drain() {
  const auto until = std::chrono::steady_clock::now() + kDrain;
  bool drained = true;
  for (const Api* api : {&for_root, &for_group}) {
    if (api->service != nullptr) api->service->close();
  }
  for (const Api* api : {&for_root, &for_group}) {
    if (api->service != nullptr) drained &= api->service->drain(until);
  }
  return drained;
}

void Daemon::State::check_stacks() {
  if (config.profiling_stacks == 0) return;
  const Result<void> possible = stacks.check(static_cast<unsigned>(config.profiling_stacks));
  if (!possible) {
    spdlog::warn("--profiling-stacks: dumps and restores will have no stack profiles: {}",
                 possible.error().message);
  }
}

void Daemon::State::keep_profiles() {
  if (config.profiles.empty()) return;
  if (!profile_keeper) {
    constexpr std::int64_t kMinutesPerDay = 24 * 60;
    profiles::KeeperOrder order;
    order.directory = config.profiles;
    order.rate = static_cast<unsigned>(config.profiles_rate);
    order.off_cpu = config.profiles_off_cpu;
    order.only = config.profiles_only;
    order.pull = {config.profiles_pull, config.profiles_pull_token, config.profiles_pull_ca};
    order.pull_every_s = config.profiles_pull_every;
    order.limits = {config.profiles_keep_days * kMinutesPerDay, config.profiles_keep_bytes};
    profile_keeper.emplace(std::move(order), *metrics);
    profiled_containers.emplace(
        profiled_containers_of(config),
        [this](const runtime::ContainerName& name) { return cgroup_of(*runtimes, name); });
  }
  // The samples of a job that has ended are still to be divided by services.
  constexpr std::int64_t kRecentNs = 120'000'000'000;
  const std::int64_t recent_ns = unix_ns() - kRecentNs;
  profiles::JobSessions jobs_by_pid;
  for (const store::Job& job : store->jobs()) {
    const bool recent = job.state == store::JobState::running || job.created_unix_ns > recent_ns;
    if (recent && job.pid != 0) jobs_by_pid[job.pid] = job.name;
  }
  profile_keeper->look(jobs_by_pid, profiled_containers->cgroups());
}

void Daemon::State::say_troubles() const {
  for (const std::string& warning : recorder->new_warnings()) {
    spdlog::warn("recorder: {}", warning);
  }
  for (const Trouble& trouble : recorder->troubles()) {
    spdlog::log(trouble.over ? spdlog::level::info : spdlog::level::err, "{}", trouble.text);
  }
}

// Waits for the disks of the state directory and of checkpoints.
void Daemon::State::delete_old_checkpoints() {
  jobs->retry_unstored();
  settle_open_restores(*store, *jobs, *metrics, open_restores, settle_restore);
  bound_job_outputs(parts());
  constexpr std::uint64_t kLooksAMinute = 60;
  // Without a bound, only failed checkpoints are removed. To look for them once a minute is enough.
  const bool bounded = config.keep_bytes != 0 || config.keep_count != 0;
  if (!bounded && looks++ % kLooksAMinute != 0) return;
  if (!std::exchange(said_what_goes, true)) {
    // A new limit, or a mistaken one, may remove many at the start.
    if (const std::string text = planned_removal(parts()); !text.empty()) spdlog::warn("{}", text);
  }
  std::string trouble = make_room(parts());
  if (!trouble.empty() && trouble != no_room) spdlog::warn("{}", trouble);
  no_room = std::move(trouble);
}

void Daemon::State::snapshot_for_signal() const {
  SnapshotRequest request;
  request.reason = "signal";
  request.before = std::chrono::hours(1);  // the limit of --profiling-keep, so all rows
  const Result<TakenSnapshot> taken = recorder->snapshot(request, false);
  if (taken) {
    spdlog::info("SIGUSR1: snapshot in {}", taken->path);
  } else {
    spdlog::error("SIGUSR1: {}", taken.error().message);
  }
}

Daemon::Daemon(std::unique_ptr<State> state) : state_(std::move(state)) {}

Daemon::~Daemon() {
  if (state_->listener != nullptr) state_->listener->stop();
  if (state_->progress != nullptr) state_->progress->stop();
  state_->for_root.stop();
  state_->for_group.stop();
  constexpr std::chrono::hours kForGood{1000};  // they use the state
  if (state_->progress != nullptr) static_cast<void>(state_->progress->wait_for_threads(kForGood));
}

Result<std::unique_ptr<Daemon>> Daemon::start(Config config, const confine::Helper& helper) {
  std::unique_ptr<Daemon> daemon(new Daemon(std::make_unique<State>()));
  State& state = *daemon->state_;
  state.config = std::move(config);
  state.foreign.emplace(helper);
  Result<std::unique_ptr<UnixListener>> listener =
      UnixListener::bind(state.config.socket, state.config.socket_group);
  if (!listener) return listener.error();
  state.listener = std::move(listener).value();
  Result<FileDescriptor> lock = take_state_dir(state.config.state_dir);
  if (!lock) return lock.error();
  state.state_lock = std::move(lock).value();
  Result<std::unique_ptr<Metrics>> metrics = Metrics::make();
  if (!metrics) return metrics.error();
  state.metrics = std::move(metrics).value();
  state.progress = std::make_unique<ProgressBoard>(state.metrics->progress());
  Result<std::unique_ptr<Recorder>> recorder =
      Recorder::make(state.metrics->registry(), state.config);
  if (!recorder) return recorder.error();
  state.recorder = std::move(recorder).value();
  Result<runtime::CriuChoice> crius = find_crius(state.config, state.criu_options());
  if (!crius) return crius.error();
  state.crius = std::move(crius).value();
  if (Result<void> ok = state.open_store(); !ok) return ok.error();
  if (Result<void> ok = state.start_http(); !ok) return ok.error();
  if (Result<void> ok = state.move_ring_aside(); !ok) return ok.error();
  if (Result<void> ok = state.recorder->start(); !ok) return ok.error();
  if (Result<void> ok = state.start_spans(); !ok) return ok.error();
  if (state.config.inside) state.kernel.start(state.config.inside_pages);
  state.check_stacks();
  state.keep_profiles();
  if (Result<void> ok = state.start_api(); !ok) return ok.error();

  spdlog::info("kymod {}", KYMO_VERSION);
  for (const runtime::CriuProgram& criu : state.crius->programs()) {
    spdlog::info("CRIU {} at {}", criu.version.text(), criu.path);
  }
  if (const auto run = state.recorder->running()) {
    spdlog::info("recording every {} into a ring of {}",
                 report::duration(state.config.profiling_interval),
                 report::bytes(run->profiler().ring_bytes()));
    spdlog::info("a snapshot can have the last {}", report::duration(run->kept()));
    state.say_troubles();
  }
  spdlog::info("ready: socket {}, http {}", state.config.socket, state.http->address());
  return daemon;
}

Result<void> Daemon::run() {
  State& state = *state_;
  const sigset_t signals = stop_signals();
  Housekeeping housekeeping([&state] { state.delete_old_checkpoints(); });
  int got = 0;
  while (got <= 0) {
    got = sigtimedwait(&signals, nullptr, &kLookAfterJobs);
    state.say_troubles();
    state.stacks.look();
    state.keep_profiles();
    if (got == SIGUSR1) {
      state.snapshot_for_signal();
      got = 0;
    }
    // The jobs of an earlier kymod are not children of this one, so nothing reports their end.
    if (got < 0 && errno == EAGAIN) {
      state.jobs->refresh();
      state.metrics->set_unconfirmed(state.unconfirmed->size(), state.unconfirmed->held());
    }
  }
  spdlog::info("stopping: {}", got == SIGTERM ? "SIGTERM" : "SIGINT");
  state.listener->stop();
  const bool drained = state.drain();
  state.keep_profiles();  // a last time, with the newest jobs
  if (state.profile_keeper) state.profile_keeper->end();
  state.progress->stop();
  Result<void> recorded = state.recorder->stop();
  if (!drained) {
    // The thread of the request cannot be ended. When kymod is gone, its criu releases the process.
    spdlog::error("a request still runs after {} s: kymod stops without waiting for it",
                  kDrain.count());
    spdlog::default_logger()->flush();  // not shutdown(): that request may log meanwhile
    _exit(1);
  }
  state.for_root.stop();
  state.for_group.stop();
  state.spans.reset();
  state.profile_keeper.reset();
  state.profiled_containers.reset();
  state.http->stop();
  const bool kept = housekeeping.stop(kDiskPatience);
  const bool runtimes_wait = state.asked->waits();
  if (!state.progress->wait_for_threads(kDiskPatience) || !state.unconfirmed->stop(kDiskPatience) ||
      !kept || runtimes_wait) {
    spdlog::warn("stopped, although {} does not answer; the next kymod looks again",
                 !kept           ? "the disk of the state directory"
                 : runtimes_wait ? "a container runtime"
                                 : "the disk of a checkpoint");
    spdlog::default_logger()->flush();
    _exit(recorded ? 0 : 1);
  }
  spdlog::info("stopped");
  return recorded;
}

Result<std::vector<Column>> available_columns(const Config& config) {
  Config all = config;
  all.profiling = true;
  Result<std::unique_ptr<Metrics>> metrics = Metrics::make();
  if (!metrics) return metrics.error();
  Result<std::unique_ptr<Recorder>> recorder = Recorder::make((*metrics)->registry(), all);
  if (!recorder) return recorder.error();
  return (*metrics)->registry().columns();
}

Result<void> check_metric_names(const Config& config) {
  Result<std::unique_ptr<Metrics>> metrics = Metrics::make();
  if (!metrics) return metrics.error();
  Result<std::unique_ptr<Recorder>> recorder = Recorder::make((*metrics)->registry(), config);
  if (!recorder) return recorder.error();
  const auto sampler = (*metrics)->registry().sampler(config.profiling_metrics);
  if (sampler) return {};
  return Error{Code::invalid_argument, "--profiling-metrics: " + sampler.error().message};
}

}  // namespace kymo::daemon
