#include "profiler/kept/taken.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/clock.h"

namespace kymo::profiles {

std::uint64_t TakenMinute::samples() const {
  std::uint64_t sum = 0;
  for (const auto& [trace, weight] : traces) sum += weight.samples;
  return sum;
}

namespace {

// Trace::service of a process that is kept because of its cgroup, until the services are found.
constexpr const char* kChosen = "chosen by its cgroup";

}  // namespace

ServiceFinder::ServiceFinder(const std::vector<std::string>& only) : all_(only.empty()) {
  constexpr std::string_view kCgroup = kOnlyCgroup;
  for (const std::string& text : only) {
    if (!text.starts_with(kCgroup)) {
      only_.insert(text);
    } else if (auto rule = cgroup_rule(text.substr(kCgroup.size()), cgroups_are_unified())) {
      cgroups_.push_back(*std::move(rule));
    }
  }
}

void ServiceFinder::set_jobs(JobSessions jobs) {
  jobs_.merge(jobs_of_minute_);  // of two jobs with one pid, the newer one stays
  jobs_of_minute_ = std::exchange(jobs_, std::move(jobs));
}

const std::string* ServiceFinder::job_of(pid_t pid) const {
  for (const JobSessions* jobs : {&jobs_, &jobs_of_minute_, &jobs_before_}) {
    if (const auto job = jobs->find(pid); job != jobs->end()) return &job->second;
  }
  return nullptr;
}

void ServiceFinder::set_containers(const std::vector<std::string>& cgroups) {
  containers_.clear();
  for (const std::string& path : cgroups) {
    if (auto rule = cgroup_rule(path, true)) containers_.push_back(*std::move(rule));
  }
}

bool ServiceFinder::keeps(const stacks::Processes::Process& process) const {
  const auto holds = [&](const CgroupRule& rule) { return is_in(rule, process.cgroups); };
  return std::any_of(cgroups_.begin(), cgroups_.end(), holds) ||
         std::any_of(containers_.begin(), containers_.end(), holds);
}

std::string ServiceFinder::of(const stacks::Trace& trace, pid_t leader, bool chosen) const {
  Service service = service_of_process(trace.process);
  if (const std::string* job = job_of(leader); job != nullptr) {
    service = {Service::Kind::job, *job};
  } else if (!trace.container.empty()) {
    service = {Service::Kind::container, trace.container};
  }
  std::string text = text_of(service);
  return all_ || chosen || only_.contains(text) ? text : std::string();
}

void ServiceFinder::divide(TakenMinute& minute) const {
  std::map<stacks::Trace, stacks::Weight> traces = std::exchange(minute.traces, {});
  while (!traces.empty()) {
    auto one = traces.extract(traces.begin());
    stacks::Trace& trace = one.key();
    trace.service = of(trace, trace.pid, !trace.service.empty());
    if (trace.service.empty()) continue;
    trace.pid = 0;
    trace.container.clear();
    minute.traces[std::move(trace)] += one.mapped();
  }
}

StackTaker::StackTaker(Type type, unsigned rate, const ServiceFinder& services)
    : type_(type),
      period_ns_(type == Type::cpu ? kNanosPerSecond / rate : 0),
      services_(services),
      begin_ns_(monotonic_ns()) {
  now_.begin_unix_ns = unix_ns();
}

Result<std::unique_ptr<StackTaker>> StackTaker::begin(Type type, unsigned rate,
                                                      const ServiceFinder& services) {
  stacks::Sampling sampling;
  sampling.rate = rate;
  sampling.waits = type == Type::off_cpu;
  Result<std::unique_ptr<stacks::Source>> source = stacks::open_bpf_source(sampling);
  if (!source) return source.error();
  std::unique_ptr<StackTaker> taker(new StackTaker(type, rate, services));
  taker->collection_ = std::make_unique<stacks::Collection>(
      *std::move(source), sampling,
      [to = taker.get()](stacks::Trace trace, const stacks::Sample& sample,
                         const stacks::Processes::Process& process, std::uint64_t /*time_ns*/) {
        to->put(std::move(trace), sample, process);
      });
  return taker;
}

void StackTaker::put(stacks::Trace trace, const stacks::Sample& sample,
                     const stacks::Processes::Process& process) {
  trace.pid = services_.leader_of(trace.pid, process.session);
  if (services_.keeps(process)) trace.service = kChosen;
  trace.process = service_of_process(trace.process).name;
  trace.thread.clear();
  const stacks::Weight weight{1, sample.value_ns};
  if (const auto found = now_.traces.find(trace); found != now_.traces.end()) {
    found->second += weight;
    return;
  }
  if (now_.traces.size() >= kMaxTraces || frames_ + trace.frames.size() > kMaxFrames) {
    ++now_.lost;
    return;
  }
  frames_ += trace.frames.size();
  now_.traces.emplace(std::move(trace), weight);
}

TakenMinute StackTaker::take(std::int64_t minute) {
  TakenMinute taken = taken_until_now(minute);
  taken.modules = collection_->take_unused();
  return taken;
}

TakenMinute StackTaker::taken_until_now(std::int64_t minute) {
  const std::uint64_t now_ns = monotonic_ns();
  const std::uint64_t lost = collection_->counts().lost;
  TakenMinute taken = std::exchange(now_, {});
  frames_ = 0;
  taken.minute = minute;
  taken.type = type_;
  taken.period_ns = period_ns_;
  taken.duration_ns = now_ns - begin_ns_;
  taken.lost += lost - lost_before_;
  now_.begin_unix_ns = unix_ns();
  begin_ns_ = now_ns;
  lost_before_ = lost;
  return taken;
}

TakenMinute StackTaker::finish(std::int64_t minute) {
  last_ = collection_->finish();
  return taken_until_now(minute);
}

}  // namespace kymo::profiles
