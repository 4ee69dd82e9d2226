#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "profiler/kept/keeper.h"

namespace kymo::profiles {

using nlohmann::json;

namespace {

// A value of four numbers, from a list of them.
template <class Value>
std::optional<Value> four_in(std::string_view text) {
  const json list = parse_json(text);
  try {
    return Value{list.at(0), list.at(1), list.at(2), list.at(3)};
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

}  // namespace

std::string order_text(const KeeperOrder& order) {
  return json_text(json{{"directory", order.directory},
                        {"rate", order.rate},
                        {"off_cpu", order.off_cpu},
                        {"only", order.only},
                        {"minutes", order.limits.minutes},
                        {"bytes", order.limits.bytes},
                        {"pull", order.pull.place},
                        {"pull_token", order.pull.token_file},
                        {"pull_ca", order.pull.ca_file},
                        {"pull_every_s", order.pull_every_s}}) +
         "\n";
}

std::string jobs_text(const JobSessions& jobs) {
  json list = json::array();
  for (const auto& [session, name] : jobs) list.push_back({session, name});
  return json_text(json{{"jobs", std::move(list)}}) + "\n";
}

std::string containers_text(const std::vector<std::string>& cgroups) {
  return json_text(json{{"containers", cgroups}}) + "\n";
}

std::optional<std::vector<std::string>> containers_in(std::string_view line) {
  const json object = parse_json(line);
  try {
    return object.at("containers").get<std::vector<std::string>>();
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

std::string clock_note(std::int64_t before, std::int64_t now, std::int64_t passed) {
  constexpr std::int64_t kUsual = 1;
  constexpr std::int64_t kPartial = 1;  // the minute `before` may have been almost over
  const std::string what = "the clock of the machine went ";
  if (now < before - kUsual) {
    return what + "back by " + std::to_string(before - now) +
           " minutes: new profiles are added to those that are kept of the same minutes";
  }
  const std::int64_t ahead = now - before - passed;
  if (ahead <= kUsual + kPartial) return {};
  return what + "forward by " + std::to_string(ahead) +
         " minutes: new profiles have the new time, and none is removed because of that";
}

std::string removed_text(const Removed& removed) {
  return json_text(json{removed.too_old, removed.too_many, removed.oldest, removed.newest});
}

std::optional<Removed> removed_in(std::string_view text) {
  return four_in<Removed>(text);
}

std::string pulled_text(const PullCounts& counts) {
  return json_text(json{counts.asked, counts.failed, counts.timed_out, counts.bytes});
}

std::optional<PullCounts> pulled_counts_in(std::string_view text) {
  return four_in<PullCounts>(text);
}

std::optional<KeeperOrder> order_in(std::string_view line) {
  const json object = parse_json(line);
  try {
    KeeperOrder order;
    object.at("directory").get_to(order.directory);
    object.at("rate").get_to(order.rate);
    object.at("off_cpu").get_to(order.off_cpu);
    object.at("only").get_to(order.only);
    object.at("minutes").get_to(order.limits.minutes);
    object.at("bytes").get_to(order.limits.bytes);
    object.at("pull").get_to(order.pull.place);
    object.at("pull_token").get_to(order.pull.token_file);
    object.at("pull_ca").get_to(order.pull.ca_file);
    object.at("pull_every_s").get_to(order.pull_every_s);
    return order;
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

std::optional<JobSessions> jobs_in(std::string_view line) {
  const json object = parse_json(line);
  try {
    JobSessions jobs;
    for (const json& one : object.at("jobs")) {
      jobs[one.at(0).get<pid_t>()] = one.at(1).get<std::string>();
    }
    return jobs;
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

}  // namespace kymo::profiles
