#include "profiler/kept/pull_targets.h"

#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <utility>

#include "base/json_text.h"
#include "profiler/kept/service.h"

namespace kymo::profiles {
namespace {

using nlohmann::json;

constexpr int kGoPort = 6060;  // that most programs use

std::optional<int> port_in(std::string_view text) {
  int port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return port > 0 && port < 65536 ? std::optional(port) : std::nullopt;
}

// Reads "http://HOST[:PORT][/PATH]". Returns what is wrong, or nothing.
std::string read_address(std::string_view text, PullTarget& target) {
  constexpr std::string_view kScheme = "http://";
  if (text.starts_with("https://")) return "programs are asked by http:// only, not by https://";
  if (!text.starts_with(kScheme)) return "its address does not begin with http://";
  text.remove_prefix(kScheme.size());
  const std::size_t slash = std::min(text.find('/'), text.size());
  std::string_view host = text.substr(0, slash);
  target.path = text.substr(slash);
  while (target.path.ends_with('/')) target.path.pop_back();
  const bool brackets = host.starts_with('[');  // an address of IPv6
  const std::size_t colon = host.find(':', brackets ? std::min(host.find(']'), host.size()) : 0);
  target.port = 80;
  if (colon != std::string_view::npos) {
    const std::optional<int> port = port_in(host.substr(colon + 1));
    if (!port) return "its port is not a number from 1 to 65535";
    target.port = *port;
    host = host.substr(0, colon);
  }
  if (brackets) host = host.substr(1, host.size() - std::min<std::size_t>(2, host.size()));
  target.host = host;
  return host.empty() ? "its address has no host" : "";
}

Result<PullTargets> targets_in_lines(std::string_view text, const std::string& path) {
  PullTargets targets;
  std::istringstream lines{std::string(text)};
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string name;
    std::string address;
    std::string more;
    if (!(words >> name)) continue;
    PullTarget target;
    target.service = text_of({Service::Kind::target, name});
    std::string wrong = "give NAME and http://HOST:PORT";
    if (words >> address && !(words >> more)) wrong = read_address(address, target);
    if (!wrong.empty()) {
      return Error{Code::invalid_argument,
                   path + ", line " + std::to_string(number) + ": " + wrong};
    }
    targets.all.push_back(std::move(target));
  }
  return targets;
}

// The value of an annotation; empty: the pod does not have it.
std::string annotation(const json& pod, const std::string& name) {
  for (const char* const owner : {"kymograph/", "coroot.com/"}) {
    const json::json_pointer at("/metadata/annotations");
    if (!pod.contains(at) || !pod[at].is_object()) return {};
    const auto found = pod[at].find(owner + name);
    if (found != pod[at].end() && found->is_string()) return found->get<std::string>();
  }
  return {};
}

std::string text_at(const json& pod, const char* pointer) {
  const json::json_pointer at(pointer);
  return pod.contains(at) && pod[at].is_string() ? pod[at].get<std::string>() : std::string();
}

Result<PullTargets> targets_in_pods(const json& list, const std::string& path) {
  PullTargets targets;
  for (const json& pod : list) {
    const std::string address = text_at(pod, "/status/podIP");
    if (annotation(pod, "profile-scrape") != "true" || address.empty()) continue;
    const std::string name =
        text_at(pod, "/metadata/namespace") + "/" + text_at(pod, "/metadata/name");
    const std::string port = annotation(pod, "profile-port");
    if (const std::optional<int> number = port.empty() ? kGoPort : port_in(port)) {
      targets.all.push_back({text_of({Service::Kind::pod, name}), address, *number, ""});
    } else if (targets.trouble.empty()) {
      targets.trouble =
          path + ": the pod " + name + " is left out: its annotation profile-port is not a port";
    }
  }
  return targets;
}

}  // namespace

Result<PullTargets> pull_targets_in(std::string_view text, const std::string& path) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || text[first] != '{') return targets_in_lines(text, path);
  const json list = parse_json(text);
  if (list.is_discarded() || !list.contains("items") || !list["items"].is_array()) {
    return Error{Code::invalid_argument,
                 path + " is no list of pods in JSON: make it with kubectl get pods -A -o json"};
  }
  return targets_in_pods(list["items"], path);
}

bool is_address(std::string_view text) {
  return text.starts_with("http://") || text.starts_with("https://");
}

std::string list_text(const Result<PullTargets>& targets) {
  if (!targets) return json_text(json{{"failed", targets.error().message}});
  json list = json::array();
  for (const PullTarget& one : targets->all) {
    list.push_back({one.service, one.host, one.port, one.path});
  }
  return json_text(json{{"targets", std::move(list)}, {"trouble", targets->trouble}});
}

Result<PullTargets> listed_in(std::string_view text, const std::string& place) {
  const json object = parse_json(text);
  try {
    if (object.contains("failed")) {  // of a file, it begins with its path
      return Error{Code::unavailable,
                   (is_address(place) ? place + ": " : "") + object["failed"].get<std::string>()};
    }
    PullTargets targets;
    object.at("trouble").get_to(targets.trouble);
    for (const json& one : object.at("targets")) {
      PullTarget target{one.at(0), one.at(1), one.at(2), one.at(3)};
      const std::optional<Service> service = service_in(target.service);
      const bool named =
          service && (service->kind == Service::Kind::pod ||
                      (service->kind == Service::Kind::target && !is_address(place)));
      const bool good = named && !target.host.empty() && target.port > 0 && target.port < 65536;
      if (good) targets.all.push_back(std::move(target));
    }
    return targets;
  } catch (const json::exception&) {
    return Error{Code::unavailable, place + ": its list of targets could not be read"};
  }
}

}  // namespace kymo::profiles
