#include "checkpoint/inside/sampler.h"

#include <pthread.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/clock.h"
#include "base/human.h"
#include "base/look_pace.h"
#include "base/reading_age.h"

namespace kymo::inside {
namespace {

// What is read takes at most one part in 40 of a CPU, 2.5 %: CRIU needs the CPUs.
constexpr std::uint64_t kRest = 39;

}  // namespace

Sampler::Sampler(std::vector<std::unique_ptr<Source>> sources) : sources_(std::move(sources)) {
  for (const auto& source : sources_) {
    columns_.insert(columns_.end(), source->columns().begin(), source->columns().end());
  }
  add_ages();
  read_at_.resize(sources_.size());
  read_.resize(columns_.size());
  values_.resize(columns_.size());
  begun_.resize(columns_.size());
  shown_.resize(columns_.size());
  read_all();
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i].kind != Kind::counter) continue;
    begun_[i] = values_[i];
    shown_[i] = 0;
  }
}

void Sampler::add_ages() {
  for (std::size_t source = 0; source < sources_.size(); ++source) {
    for (const Metric& column : sources_[source]->columns()) {
      std::string age = age_column_of(column.name);
      const auto known = std::find_if(columns_.begin(), columns_.end(),
                                      [&](const Metric& metric) { return metric.name == age; });
      if (known != columns_.end()) continue;
      columns_.push_back({std::move(age),
                          "Time since the values of this source were read; 0 while it is not read",
                          Kind::gauge,
                          Unit::nanoseconds,
                          {},
                          {}});
      ages_.push_back(source);
    }
  }
}

std::vector<std::string> Sampler::missing() const {
  std::vector<std::string> lines;
  for (const auto& source : sources_) {
    if (std::string line = source->missing(); !line.empty()) lines.push_back(std::move(line));
  }
  constexpr std::uint64_t kWorthTellingNs = 5'000'000;
  const std::uint64_t mean_ns = ran_ns_ / std::max<std::uint64_t>(1, readings_);
  // Otherwise it waited for a CPU, or it was asked to look so seldom.
  const bool rested = 2 * (kRest + 1) * cpu_ns_ >= ran_ns_ && mean_ns >= 2 * interval_ns_;
  if (rested && mean_ns >= kWorthTellingNs) {
    lines.push_back("what took less than " + human::duration(mean_ns) +
                    ": each look costs so much here that kymod looks only so often");
  }
  return lines;
}

std::uint64_t Sampler::longest_disk_wait_ns() const {
  std::uint64_t longest = 0;
  for (const auto& source : sources_) longest = std::max(longest, source->longest_disk_wait_ns());
  return longest;
}

Sleeper Sampler::sleeper() const {
  for (const auto& source : sources_) {
    if (Sleeper sleeper = source->sleeper(); sleeper.task != 0) return sleeper;
  }
  return {};
}

void Sampler::start(std::chrono::nanoseconds interval, Put put) {
  constexpr std::chrono::nanoseconds kMinInterval = std::chrono::milliseconds(1);
  interval_ns_ = static_cast<std::uint64_t>(std::max(interval, kMinInterval).count());
  put_ = std::move(put);
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error&) {
    put_ = nullptr;
  }
}

void Sampler::stop() {
  if (!thread_.joinable()) return;
  stop_.signal();
  thread_.join();
  put_all();
  // Nothing is read from now on. The values have no age any more.
  std::fill(shown_.begin() + static_cast<std::ptrdiff_t>(ages()), shown_.end(), UINT64_MAX);
  put_(shown_);
  put_ = nullptr;
}

void Sampler::run() {
  ::pthread_setname_np(::pthread_self(), "kymo-inside");
  const std::uint64_t began_ns = monotonic_ns();
  LookPace pace(interval_ns_, kRest, began_ns, thread_cpu_ns());
  std::uint64_t due_ns = began_ns + interval_ns_;
  while (!stop_.wait_until(due_ns)) {
    put_all();
    due_ns = pace.next_ns(monotonic_ns(), thread_cpu_ns());
  }
  cpu_ns_ = thread_cpu_ns();
  ran_ns_ = monotonic_ns() - began_ns;
}

void Sampler::read_all() {
  std::size_t at = 0;
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    Source& source = *sources_[i];
    const std::size_t count = source.columns().size();
    if (readings_ % source.every() == 0) {
      read_at_[i] = monotonic_ns();
      source.read(read_at_[i], std::span(read_).subspan(at, count));
    }
    at += count;
  }
  for (const std::size_t source : ages_) read_[at++] = read_at_[source];
  for (std::size_t i = 0; i < values_.size(); ++i) {
    // The kernel takes back some of what it has counted, such as the idle time of /proc/stat.
    const bool fell = columns_[i].kind == Kind::counter && read_[i] < values_[i];
    if (!fell) values_[i] = read_[i];
    shown_[i] = values_[i] - begun_[i];
  }
  ++readings_;
}

void Sampler::put_all() {
  read_all();
  put_(shown_);
}

}  // namespace kymo::inside
