#include "runtimes/docker/docker_client.h"

#include <httplib.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <exception>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/json_text.h"
#include "runtime/run_call.h"

namespace kymo::runtime {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr char kUsualSocket[] = "/var/run/docker.sock";
constexpr std::string_view kUnix = "unix://";
constexpr std::size_t kMaxAnswerBytes = std::size_t{16} << 20U;
constexpr int kNotModified = 304;
constexpr int kNotFound = 404;
// The timeout of a call that starts CRIU: the caller ends such a call itself.
constexpr std::chrono::hours kForever{24 * 365};

bool is_plain(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-';
}

// Writes a text as a value in the query of an address.
std::string in_query(const std::string& text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  constexpr unsigned kHalf = 4;
  constexpr unsigned kLow = 15;
  std::string query;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (is_plain(c)) {
      query += c;
    } else {
      query += {'%', kDigits[byte >> kHalf], kDigits[byte & kLow]};
    }
  }
  return query;
}

std::string path_of_container(const std::string& id, const std::string& verb) {
  return "/containers/" + id + "/" + verb;
}

// A time as Docker's events have it: SECONDS.NANOSECONDS.
std::string in_seconds(std::chrono::system_clock::time_point time) {
  constexpr std::size_t kDigits = 9;
  const auto passed = time.time_since_epoch();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(passed);
  const auto rest = std::chrono::duration_cast<std::chrono::nanoseconds>(passed - seconds);
  const std::string digits = std::to_string(rest.count());
  return std::to_string(seconds.count()) + "." + std::string(kDigits - digits.size(), '0') + digits;
}

// A member of JSON that may be missing or of another type.
template <class Value>
Value member(const json& object, const char* name, Value otherwise) try {
  return object.is_object() ? object.value(name, otherwise) : otherwise;
} catch (const json::exception&) {
  return otherwise;
}

json part(const json& object, const char* name) {
  return object.is_object() && object.contains(name) ? object[name] : json();
}

}  // namespace

struct DockerClient::Call {
  std::string method;
  std::string path;
  std::string body{};
  milliseconds patience = kAnswersWithin;
  httplib::Client* client = nullptr;  // null: one of its own
};

struct DockerClient::Answer {
  std::string body;
  bool experimental = false;
};

bool is_docker_name(const std::string& name) {
  constexpr std::size_t kMaxLength = 255;
  return !name.empty() && name.size() <= kMaxLength &&
         std::isalnum(static_cast<unsigned char>(name.front())) != 0 &&
         std::all_of(name.begin(), name.end(), is_plain);
}

DockerClient::DockerClient() : socket_(kUsualSocket) {
  const char* const host = std::getenv("DOCKER_HOST");
  if (host == nullptr || *host == '\0') return;
  const std::string_view named = host;
  if (named.starts_with(kUnix)) {
    socket_ = named.substr(kUnix.size());
  } else {
    socket_.clear();
    refused_ = "DOCKER_HOST is " + std::string(named) +
               ": set it to a unix socket of this machine (unix://PATH) when you start kymod";
  }
}

Result<DockerClient::Answer> DockerClient::ask(const Call& call) const try {
  if (!refused_.empty()) return Error{Code::unavailable, refused_};
  httplib::Client own(socket_);
  httplib::Client& client = call.client != nullptr ? *call.client : own;
  client.set_address_family(AF_UNIX);
  client.set_connection_timeout(call.patience);
  client.set_write_timeout(call.patience);
  client.set_read_timeout(call.patience);
  httplib::Request request;
  request.method = call.method;
  request.path = call.path;
  request.body = call.body;
  // The name of the host would be the path of the socket, which Docker refuses.
  request.set_header("Host", "docker");
  request.set_header("Content-Type", "application/json");
  Answer answer;
  const auto began = steady_clock::now();
  request.content_receiver = [&](const char* data, std::size_t size, std::uint64_t, std::uint64_t) {
    answer.body.append(data, size);
    return answer.body.size() <= kMaxAnswerBytes && steady_clock::now() - began < call.patience;
  };
  const httplib::Result got = client.send(request);
  if (!got && got.error() == httplib::Error::Connection) {
    return Error{Code::unavailable,
                 "no program listens on " + socket_ +
                     ": start Docker, or set DOCKER_HOST to its socket when you start kymod"};
  }
  if (!got) {
    return steady_clock::now() - began >= call.patience
               ? Error{Code::deadline_exceeded, "Docker does not answer"}
               : Error{Code::unavailable, "Docker ended the connection without an answer"};
  }
  constexpr int kHundred = 100;
  if (got->status / kHundred == 2) {
    answer.experimental = got->get_header_value("Docker-Experimental") == "true";
    return answer;
  }
  if (got->status == kNotModified) {
    return Error{Code::already_exists, kSoAlready};
  }
  std::string why = member(parse_json(answer.body), "message", std::string());
  why.resize(std::min(why.size(), why.find('\n')));  // what follows names a log that is gone
  return Error{got->status == kNotFound ? Code::not_found : Code::failed_precondition,
               why.empty() ? "Docker answers " + std::to_string(got->status) : why};
} catch (const std::exception& failure) {  // such as out of memory
  return Error{Code::internal, failure.what()};
}

Result<json> DockerClient::get(const std::string& path, milliseconds patience) const {
  const Result<Answer> answer = ask({"GET", path, "", patience});
  if (!answer) return answer.error();
  json object = parse_json(answer->body);
  if (object.is_object()) return object;
  return Error{Code::data_loss, "Docker's answer to " + path + " is not JSON"};
}

Result<void> DockerClient::post(const std::string& path) const {
  const Result<Answer> answer = ask({"POST", path});
  return answer ? Result<void>() : answer.error();
}

Result<CommandOutcome> DockerClient::post_within_limits(const std::string& path,
                                                        const std::string& body,
                                                        const Command& limits) const {
  httplib::Client client(socket_);
  const auto call = [&]() -> Result<void> {
    const Result<Answer> answer = ask({"POST", path, body, kForever, &client});
    return answer ? Result<void>() : answer.error();
  };
  return run_call(limits, call, [&] { client.stop(); });
}

Result<DockerContainer> DockerClient::container(const std::string& name,
                                                milliseconds patience) const {
  if (!is_docker_name(name)) {
    return Error{Code::invalid_argument,
                 "a container of Docker is named by its id or its name, "
                 "which has only [A-Za-z0-9_.-] and begins with a letter "
                 "or a digit"};
  }
  const Result<json> seen = get(path_of_container(name, "json"), patience);
  if (!seen) return seen.error();
  const json state = part(*seen, "State");
  DockerContainer found;
  found.id = member(*seen, "Id", std::string());
  found.status = member(state, "Status", std::string());
  if (member(state, "Running", false)) found.pid = member(state, "Pid", pid_t{0});
  found.paused = member(state, "Paused", false);
  found.auto_remove = member(part(*seen, "HostConfig"), "AutoRemove", false);
  if (is_docker_name(found.id)) return found;
  return Error{Code::data_loss, "Docker does not say the id of the container"};
}

Result<bool> DockerClient::experimental() const {
  const Result<Answer> answer = ask({"GET", "/_ping"});
  return answer ? Result<bool>(answer->experimental) : answer.error();
}

Result<std::string> DockerClient::data_root() const {
  const Result<json> info = get("/info", kAnswersWithin);
  if (!info) return info.error();
  std::string root = member(*info, "DockerRootDir", std::string());
  if (!root.empty()) return root;
  return Error{Code::data_loss, "Docker does not say where it keeps its data"};
}

Result<void> DockerClient::pause(const std::string& id) const {
  // runc waits a few milliseconds for a cgroup of version 1 to freeze, and then thaws it again. A
  // busy machine can need longer.
  constexpr int kTries = 5;
  for (int tries = 1;; ++tries) {
    Result<void> paused = post(path_of_container(id, "pause"));
    const bool in_vain =
        !paused && paused.error().message.find("unable to freeze") != std::string::npos;
    if (!in_vain || tries == kTries) return paused;
  }
}

Result<void> DockerClient::unpause(const std::string& id) const {
  return post(path_of_container(id, "unpause"));
}

Result<DockerEvents> DockerClient::events(const std::string& id,
                                          std::chrono::system_clock::time_point since) const {
  const json filters{{"container", {id}}, {"event", {"unpause", "kill"}}};
  const std::string path = "/events?since=" + in_seconds(since) +
                           "&until=" + in_seconds(std::chrono::system_clock::now()) +
                           "&filters=" + in_query(json_text(filters));
  const Result<Answer> seen = ask({"GET", path});
  if (!seen) return seen.error();
  DockerEvents events;
  // One object of JSON in each line.
  for (std::size_t at = 0; at < seen->body.size();) {
    const std::size_t end = std::min(seen->body.find('\n', at), seen->body.size());
    const std::string action =
        member(parse_json(seen->body.substr(at, end - at)), "Action", std::string());
    events.unpaused = events.unpaused || action == "unpause";
    events.signalled = events.signalled || action == "kill";
    at = end + 1;
  }
  return events;
}

Result<void> DockerClient::kill(const std::string& id) const {
  return post(path_of_container(id, "kill"));
}

Result<CommandOutcome> DockerClient::checkpoint(const std::string& id, const std::string& folder,
                                                const std::string& name,
                                                const Command& limits) const {
  const json options{{"CheckpointID", name}, {"CheckpointDir", folder}, {"Exit", false}};
  return post_within_limits(path_of_container(id, "checkpoints"), json_text(options), limits);
}

Result<CommandOutcome> DockerClient::start(const std::string& id, const std::string& name,
                                           const Command& limits) const {
  return post_within_limits(path_of_container(id, "start?checkpoint=" + in_query(name)), "",
                            limits);
}

}  // namespace kymo::runtime
