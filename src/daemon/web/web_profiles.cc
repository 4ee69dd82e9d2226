#include "daemon/web/web_profiles.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/human.h"
#include "base/json_text.h"
#include "base/patience.h"
#include "base/turns.h"
#include "daemon/web/compared_profile.h"
#include "lens/report/flame_diff.h"
#include "lens/report/kept_profiles.h"
#include "lens/report/profile_diff.h"
#include "profiler/kept/reading.h"
#include "profiler/stacks/comparison.h"
#include "profiler/stacks/output.h"

namespace kymo::daemon {
namespace {

using profiles::Query;
using profiles::Range;
using ProfileJson = nlohmann::ordered_json;

constexpr std::size_t kMaxServices = 1000;
constexpr std::uint64_t kDefaultSteps = 300;
constexpr std::uint64_t kMaxSteps = 1000;
// Of the stacks of an answer: about two million frames. Chromium draws as many in a second.
constexpr std::uint64_t kMaxStackBytes = 16U << 20U;

// Far from where a sum would overflow: the year 2116.
constexpr std::uint64_t kLastInstant = std::uint64_t{1} << 62U;

// Errors: failed_precondition: kymod keeps none; permission_denied: the page does not show them.
Result<void> check_shown(const Config& config) {
  if (config.profiles.empty()) {
    return Error{Code::failed_precondition,
                 "kymod keeps no profiles: start it with --profiles=FOLDER"};
  }
  if (config.http_profiles) return {};
  return Error{Code::permission_denied,
               "the page does not show profiles, because they name what all users run: start kymod "
               "with --http-profiles, or use kymo profiles"};
}

Result<std::int64_t> instant_in(const http::Request& request, const std::string& name) {
  if (request.value(name).empty()) return Error{Code::invalid_argument, name + " is missing"};
  const Result<std::uint64_t> number = request.number(name, 0, kLastInstant);
  if (!number) return number.error();
  return static_cast<std::int64_t>(*number);
}

Result<Range> range_in(const http::Request& request) {
  const Result<std::int64_t> from = instant_in(request, "from_unix_ns");
  if (!from) return from.error();
  const Result<std::int64_t> to = instant_in(request, "to_unix_ns");
  if (!to) return to.error();
  if (*from < *to) return profiles::minutes_of(*from, *to);
  return Error{Code::invalid_argument, "from_unix_ns=" + std::to_string(*from) +
                                           " is not before to_unix_ns=" + std::to_string(*to)};
}

Result<profiles::Type> type_in(const http::Request& request) {
  const std::string name = request.value("type");
  if (name.empty()) return profiles::Type::cpu;
  if (const auto type = profiles::type_named(name)) return *type;
  std::string all;
  for (const profiles::TypeFacts& facts : profiles::all_types()) {
    all += (all.empty() ? "" : ", ") + std::string(facts.name);
  }
  return Error{Code::invalid_argument, "type=" + name + ": there are " + all};
}

Result<Query> query_in(const http::Request& request) {
  Query query;
  const Result<Range> range = range_in(request);
  if (!range) return range.error();
  const Result<profiles::Type> type = type_in(request);
  if (!type) return type.error();
  query.range = *range;
  query.type = *type;
  query.most_bytes = kMaxStackBytes;
  const std::string service = request.value("service");
  if (service.empty()) return query;
  query.service = profiles::service_in(service);
  if (query.service) return query;
  return Error{
      Code::invalid_argument,
      "service=" + service + ": give one that /api/profiles lists, such as job:web, or none"};
}

ProfileJson head_of(const Range& range) {
  return {{"from_unix_ns", range.begin * profiles::kNanosPerMinute},
          {"to_unix_ns", range.end * profiles::kNanosPerMinute}};
}

std::string text_of(const Query& query) {
  return query.service ? profiles::text_of(*query.service) : "all services";
}

http::Reply reply_of(const ProfileJson& body) {
  return http::json_reply(json_text(body) + "\n");
}

ProfileJson types_json() {
  ProfileJson types = ProfileJson::array();
  for (const auto& [type, name, quantity, level] : profiles::all_types()) {
    types.push_back({{"type", name},
                     {"title", profiles::title_of(type)},
                     {"samples", facts_of(quantity).counted},
                     {"unit", facts_of(quantity).unit}});
  }
  return types;
}

Result<http::Reply> services_reply(profiles::Store& store, const http::Request& request) {
  const Result<Range> range = range_in(request);
  if (!range) return range.error();
  Result<std::vector<profiles::ServiceTotal>> services = store.services(*range);
  if (!services) return services.error();
  const Result<profiles::Extent> extent = store.extent();
  if (!extent) return extent.error();
  ProfileJson body = head_of(*range);
  body["kept"] = report::json_of(*extent);
  body["types"] = types_json();
  const std::size_t shown = std::min(services->size(), kMaxServices);
  body["left_out"] = services->size() - shown;
  services->resize(shown);
  body["services"] = ProfileJson::array();
  for (const profiles::ServiceTotal& one : *services) {
    body["services"].push_back(report::json_of(one));
  }
  return reply_of(body);
}

Result<http::Reply> totals_reply(profiles::Store& store, const http::Request& request) {
  const Result<Query> query = query_in(request);
  if (!query) return query.error();
  const Result<std::uint64_t> points = request.number("points", kDefaultSteps, kMaxSteps);
  if (!points) return points.error();
  if (*points == 0) return Error{Code::invalid_argument, "points=0: give at least 1"};
  const Result<std::vector<profiles::MinuteTotal>> totals = store.totals(*query);
  if (!totals) return totals.error();
  const auto covered = store.covered(query->type, query->range);
  if (!covered) return covered.error();
  const profiles::Steps steps =
      profiles::steps_of(query->range, static_cast<std::int64_t>(*points), *totals, *covered);
  ProfileJson body = head_of(query->range);
  body["step_ns"] = steps.minutes * profiles::kNanosPerMinute;
  const char* const unit = facts_of(quantity_of(query->type)).unit;
  body["unit"] = unit;
  body["level"] = facts_of(query->type).level;
  for (const char* name : {"covered_ns", "samples", unit}) body[name] = ProfileJson::array();
  for (const profiles::Step& step : steps.steps) {
    body["covered_ns"].push_back(step.covered_ns);
    body["samples"].push_back(step.weight.samples);
    body[unit].push_back(step.weight.value);
  }
  return reply_of(body);
}

// `when`: the range, for the error.
// Errors: also not_found: there are no samples.
Result<stacks::NamedProfile> stacks_of(profiles::Store& store, const Query& query,
                                       const std::string& when = "this range") {
  Result<stacks::NamedProfile> profile = store.profile(query);
  if (!profile || !profile->stacks.empty()) return profile;
  return Error{Code::not_found, text_of(query) + ": there are no samples of " +
                                    facts_of(quantity_of(query.type)).what + " in " + when +
                                    "; /api/profiles lists the services that have some"};
}

Result<http::Reply> stacks_reply(profiles::Store& store, const http::Request& request) {
  const Result<Query> query = query_in(request);
  if (!query) return query.error();
  const std::string format = request.value("format");
  if (!format.empty() && format != "pprof" && format != "folded") {
    return Error{Code::invalid_argument,
                 "format=" + format + ": there are pprof and folded, and JSON without a format"};
  }
  const Result<stacks::NamedProfile> profile = stacks_of(store, *query);
  if (!profile) return profile.error();
  if (format == "pprof") {
    const std::int64_t begin_ns = query->range.begin * profiles::kNanosPerMinute;
    return http::Reply{200, "application/gzip", stacks::pprof(*profile, begin_ns), {}};
  }
  if (format == "folded") {
    return http::Reply{200, "text/plain; charset=utf-8", stacks::folded(*profile), {}};
  }
  ProfileJson body = head_of(query->range);
  body.update(report::flame_json(*profile, text_of(*query)));
  return reply_of(body);
}

// The range with which one is compared, which begins at before_unix_ns or is just before.
// Errors: invalid_argument: they overlap.
Result<Range> other_range(const http::Request& request, const Range& shown) {
  const std::string name = "before_unix_ns";
  std::optional<std::int64_t> begin;
  if (!request.value(name).empty()) {
    const Result<std::int64_t> from = instant_in(request, name);
    if (!from) return from.error();
    begin = *from / profiles::kNanosPerMinute;
  }
  if (const auto other = profiles::compared_range(shown, begin)) return *other;
  return Error{Code::invalid_argument,
               name + "=" + request.value(name) + ": this range overlaps the one that is shown"};
}

// The stacks of the other range of a comparison.
Result<ComparedProfile> other_stacks(profiles::Store& store, const Query& query,
                                     const Range& other) {
  Query before = query;
  before.range = other;
  const bool adjoins = other.end == query.range.begin;
  Result<stacks::NamedProfile> stacks = stacks_of(
      store, before, adjoins ? "the time before this range" : "the range to compare with");
  if (!stacks) return stacks.error();
  return ComparedProfile{adjoins ? "the time before" : "another range", *std::move(stacks)};
}

// The stacks of a service and type beside those of another range, or `other`.
Result<http::Reply> comparison_reply(profiles::Store& store, const http::Request& request,
                                     std::optional<ComparedProfile> other) {
  const Result<Query> query = query_in(request);
  if (!query) return query.error();
  ProfileJson body = head_of(query->range);
  if (!other) {
    const Result<Range> range = other_range(request, query->range);
    if (!range) return range.error();
    Result<ComparedProfile> found = other_stacks(store, *query, *range);
    if (!found) return found.error();
    other = *std::move(found);
    body["before_unix_ns"] = range->begin * profiles::kNanosPerMinute;
    body["before_to_unix_ns"] = range->end * profiles::kNanosPerMinute;
  }
  const Result<stacks::NamedProfile> shown = stacks_of(store, *query);
  if (!shown) return shown.error();
  Result<stacks::Comparison> comparison = stacks::compare(other->profile, *shown);
  if (!comparison) return comparison.error();
  const report::ProfileDiff diff{other->name, text_of(*query), *std::move(comparison)};
  body.update(report::flame_diff_json(diff, stacks::compared_tree(other->profile, *shown)));
  return reply_of(body);
}

using ProfileAnswer = std::function<Result<http::Reply>(profiles::Store&, const http::Request&)>;
// Makes an answer, once it is its turn. To be called before any thread that may outlive the daemon.
using MakeAnswer = std::function<Result<ProfileAnswer>(const http::Request&)>;

// Answers on a thread of its own, because a disk that stalls can hold that up for any time. The thread
// keeps its turn until it ends.
Result<http::Reply> answer_in_turn(const Config& config, const MakeAnswer& make,
                                   const http::Request& request) {
  constexpr int kAtOnce = 2;
  constexpr int kWaiting = 6;
  constexpr auto kTurnPatience = std::chrono::seconds(10);
  constexpr auto kReadPatience = std::chrono::seconds(20);
  static Turns& turns = *new Turns(kAtOnce, kWaiting);  // a thread may go on while kymod ends
  if (Result<void> shown = check_shown(config); !shown) return shown.error();
  Turns::Turn turn = turns.take(kTurnPatience);
  if (turn == nullptr) {
    return Error{Code::unavailable,
                 "too many requests read the profiles at the moment: try again in some seconds"};
  }
  Result<ProfileAnswer> answer = make(request);
  if (!answer) return answer.error();
  const std::string& directory = config.profiles;
  auto reply = within(kReadPatience,
                      [turn = std::move(turn), directory, answer = *std::move(answer),
                       request]() -> Result<http::Reply> {
                        const Result<std::unique_ptr<profiles::Store>> store =
                            profiles::open_kept(directory);
                        if (!store) return store.error();
                        return answer(**store, request);
                      });
  if (reply) return *std::move(reply);
  return Error{Code::deadline_exceeded,
               "cannot read the profiles in " + directory + " within " +
                   human::duration(kReadPatience) +
                   ": choose a shorter range or one service, or check whether the disk answers"};
}

// What a request names beside the store is read before: that needs the daemon.
Result<ProfileAnswer> make_comparison(const Parts& parts, const http::Request& request) {
  const Result<Query> query = query_in(request);
  if (!query) return query.error();
  Result<std::optional<ComparedProfile>> other = compared_profile(parts, request, *query);
  if (!other) return other.error();
  return ProfileAnswer(
      [other = *std::move(other)](profiles::Store& store, const http::Request& asked) {
        return comparison_reply(store, asked, other);
      });
}

Result<ProfileAnswer> make_others(const Parts& parts) {
  return ProfileAnswer(
      [places = other_places(parts)](profiles::Store& /*store*/, const http::Request& /*asked*/) {
        return Result<http::Reply>(reply_of(others_json(places)));
      });
}

}  // namespace

void add_profile_paths(http::Server& server, const Parts& parts) {
  const auto add = [&](const std::string& path, const MakeAnswer& make) {
    server.get(path, [&config = parts.config, make](const http::Request& request) {
      Result<http::Reply> reply = answer_in_turn(config, make, request);
      return reply ? *std::move(reply) : http::error_reply(reply.error());
    });
  };
  const auto always = [](ProfileAnswer answer) {
    return [answer = std::move(answer)](const http::Request&) {
      return Result<ProfileAnswer>(answer);
    };
  };
  add("/api/profiles", always(services_reply));
  add("/api/profile_totals", always(totals_reply));
  add("/api/profile", always(stacks_reply));
  add("/api/profile_comparison",
      [parts](const http::Request& request) { return make_comparison(parts, request); });
  add("/api/profile_others", [parts](const http::Request&) { return make_others(parts); });
}

}  // namespace kymo::daemon
