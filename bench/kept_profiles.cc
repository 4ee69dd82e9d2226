// Measures what it costs to keep stack profiles: a day of minutes of many services is written to a store,
// which then answers queries. For comparison, the same minutes are written as pprof files, one file each.
//
//   bench_kept_profiles --folder DIR [--minutes 1440] [--services 200] [--queries 5]
//
// In each minute, a service has 30 to 60 of its 400 stacks. Hot stacks are chosen more often. A stack has 20
// to 40 of the service's 300 functions. The number of samples that the queries return is checked.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/json_text.h"
#include "profiler/kept/sqlite_store.h"
#include "profiler/stacks/output.h"

namespace {

using kymo::profiles::Minute;
using kymo::profiles::Query;
using kymo::profiles::SqliteStore;
using kymo::stacks::NamedProfile;

constexpr std::uint64_t kPeriodNs = 20'408'163;

struct Options {
  std::string folder;
  std::int64_t minutes = 1440;
  std::uint32_t services = 200;
  int queries = 5;
};

// The functions and stacks of all services of a machine.
class Machine {
 public:
  explicit Machine(std::uint32_t services) {
    for (std::uint32_t service = 0; service < services; ++service) add_service(service);
  }

  Minute minute(std::int64_t number) {
    Minute minute{number, kymo::profiles::Type::cpu, number, {}};
    NamedProfile& profile = minute.profile;
    profile.period_ns = kPeriodNs;
    profile.duration_ns = kymo::profiles::kNanosPerMinute;
    Places places(functions_);
    for (const std::vector<NamedProfile::Stack>& stacks : stacks_) {
      const int count = std::uniform_int_distribution(30, 60)(random_);
      for (int i = 0; i < count; ++i) {
        std::exponential_distribution<> hot(8);
        const auto place = static_cast<std::size_t>(hot(random_) * kStacks) % kStacks;
        NamedProfile::Stack stack = stacks[place];
        for (std::uint32_t& function : stack.functions) function = places.of(function, profile);
        stack.weight = {1, kPeriodNs};
        profile.stacks.push_back(std::move(stack));
        ++samples_;
      }
    }
    return minute;
  }
  [[nodiscard]] std::uint64_t samples() const { return samples_; }

 private:
  static constexpr std::size_t kStacks = 400;
  static constexpr std::uint32_t kFunctions = 300;

  // The functions that occur in a minute, and their indices in it.
  class Places {
   public:
    explicit Places(const std::vector<NamedProfile::Function>& all) : all_(all) {}
    std::uint32_t of(std::uint32_t function, NamedProfile& profile) {
      const auto place = static_cast<std::uint32_t>(profile.functions.size());
      const auto [found, added] = places_.try_emplace(function, place);
      if (added) profile.functions.push_back(all_[function]);
      return found->second;
    }

   private:
    const std::vector<NamedProfile::Function>& all_;
    std::unordered_map<std::uint32_t, std::uint32_t> places_;
  };

  void add_service(std::uint32_t number) {
    const std::string name = "service" + std::to_string(number);
    for (std::uint32_t i = 0; i < kFunctions; ++i) {
      functions_.push_back({name + "::function_with_a_name_of_usual_length_" + std::to_string(i),
                            "/usr/lib/lib" + name + ".so", true});
    }
    std::vector<NamedProfile::Stack> stacks(kStacks);
    for (NamedProfile::Stack& stack : stacks) {
      stack.process = name;
      stack.service = "process:" + name;
      const int depth = std::uniform_int_distribution(20, 40)(random_);
      std::uniform_int_distribution<std::uint32_t> any(0, kFunctions - 1);
      for (int i = 0; i < depth; ++i) stack.functions.push_back(number * kFunctions + any(random_));
    }
    stacks_.push_back(std::move(stacks));
  }

  std::mt19937 random_{1};  // NOLINT(cert-msc51-cpp): the same each time
  std::vector<NamedProfile::Function> functions_;
  std::vector<std::vector<NamedProfile::Stack>> stacks_;
  std::uint64_t samples_ = 0;
};

template <class Work>
double nanoseconds(const Work& work) {
  const std::uint64_t begin_ns = kymo::monotonic_ns();
  work();
  return static_cast<double>(kymo::monotonic_ns() - begin_ns);
}

[[noreturn]] void fail(const std::string& why) {
  std::fprintf(stderr, "bench_kept_profiles: %s\n", why.c_str());
  std::exit(1);
}

std::uint64_t samples_of(SqliteStore& store, const Query& query) {
  const auto profile = store.profile(query);
  if (!profile) fail(profile.error().message);
  return profile->sum().samples;
}

void run(const Options& options) {
  auto store = SqliteStore::open(options.folder + "/" + SqliteStore::kFileName);
  if (!store) fail(store.error().message);
  Machine machine(options.services);
  nlohmann::json samples = nlohmann::json::object();
  double pprof_bytes = 0;
  for (std::int64_t number = 0; number < options.minutes; ++number) {
    const Minute minute = machine.minute(number);
    samples["add"].push_back(nanoseconds([&] {
      if (const auto added = (*store)->add(minute); !added) fail(added.error().message);
    }));
    constexpr std::int64_t kSome = 60;  // fewer minutes, because a file takes longer than the store
    if (number % kSome != 0) continue;
    pprof_bytes += static_cast<double>(kymo::stacks::pprof(minute.profile, 0).size()) *
                   static_cast<double>(std::min(kSome, options.minutes));
  }
  const auto extent = (*store)->extent();
  if (!extent) fail(extent.error().message);
  const auto rows = static_cast<double>(extent->rows);
  samples["bytes"].push_back(static_cast<double>(extent->bytes) / rows);
  samples["pprof.bytes"].push_back(pprof_bytes / rows);
  const double per_minute = rows / static_cast<double>(options.minutes);
  for (auto& one : samples["add"]) samples["row"].push_back(one.get<double>() / per_minute);
  const kymo::profiles::Range day{0, options.minutes};
  const Query one{{}, kymo::profiles::service_in("process:service0"), day};
  const Query all{{}, {}, day};
  for (int i = 0; i < options.queries; ++i) {
    samples["query.one"].push_back(nanoseconds([&] { samples_of(**store, one); }));
    samples["query.all"].push_back(nanoseconds([&] {
      if (samples_of(**store, all) != machine.samples()) fail("samples are missing");
    }));
    samples["query.services"].push_back(
        nanoseconds([&] { static_cast<void>((*store)->services(day)); }));
  }
  std::printf("%s\n", kymo::json_text(nlohmann::json{{"samples", samples}}).c_str());
}

}  // namespace

// NOLINTNEXTLINE(bugprone-exception-escape): what cannot be parsed ends the benchmark
int main(int argc, char** argv) {
  Options options;
  CLI::App app("Measure what it costs to keep stack profiles");
  app.add_option("--folder", options.folder, "an empty folder")->required();
  app.add_option("--minutes", options.minutes);
  app.add_option("--services", options.services);
  app.add_option("--queries", options.queries);
  CLI11_PARSE(app, argc, argv);
  run(options);
  return 0;
}
