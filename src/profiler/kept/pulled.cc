#include "profiler/kept/pulled.h"

#include <grp.h>
#include <httplib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/confine/confine.h"
#include "base/file.h"
#include "profiler/stacks/output.h"

namespace kymo::profiles {
namespace {

using stacks::NamedProfile;
using stacks::Weight;

constexpr std::size_t kMaxBytes = std::size_t{64} << 20U;
constexpr int kPatienceS = 10;

// A profile that the target gives, and what is stored of it.
struct Kind {
  const char* path;
  std::vector<Type> types;
};

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> kAll{{"heap", {Type::go_heap, Type::go_alloc}},
                                      {"goroutine", {Type::go_goroutine}},
                                      {"block", {Type::go_block}},
                                      {"mutex", {Type::go_mutex}},
                                      {"profile", {Type::go_cpu}}};
  return kAll;
}

bool counts_from_start(Type type) {
  return type == Type::go_alloc || type == Type::go_block || type == Type::go_mutex;
}

std::string why(httplib::Error error) {
  switch (error) {
    case httplib::Error::Connection:
      return "it takes no connection";
    case httplib::Error::SSLServerVerification:
      return "its certificate is not signed by a trusted authority";
    case httplib::Error::Read:
      return "it closes the connection before it has answered";
    default:
      return httplib::to_string(error);
  }
}

// What the target answered; an error says why it gave nothing.
// It must come within `patience`.
Result<std::string> asked(httplib::Client& client, const std::string& path,
                          std::chrono::seconds patience) {
  const auto until = std::chrono::steady_clock::now() + patience;
  std::string body;
  bool too_long = false;
  const httplib::Result result = client.Get(path, [&](const char* data, std::size_t size) {
    too_long = body.size() + size > kMaxBytes;
    if (!too_long) body.append(data, size);
    return !too_long;
  });
  if (too_long) return Error{Code::resource_exhausted, "its answer is longer than 64 MiB"};
  if (!result && std::chrono::steady_clock::now() >= until) {
    return Error{Code::deadline_exceeded, "it does not answer in time"};
  }
  if (!result) return Error{Code::unavailable, why(result.error())};
  if (result->status != 200) {
    return Error{Code::unavailable, "it answers with status " + std::to_string(result->status)};
  }
  return body;
}

// Becomes the user nobody, without any capability, because the program that answers is not trusted.
Result<void> drop_root() {
  constexpr uid_t kNobody = 65534;
  static_cast<void>(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
  if (::geteuid() != 0) return {};
  if (::setgroups(0, nullptr) == 0 && ::setresgid(kNobody, kNobody, kNobody) == 0 &&
      ::setresuid(kNobody, kNobody, kNobody) == 0) {
    return {};
  }
  return system_error("cannot become the user nobody, who sends the requests", errno);
}

struct Answer {
  const Kind* kind = nullptr;
  std::int64_t begin_unix_ns = 0;
  Result<std::string> body;
};

std::vector<Answer> ask_all(const PullTarget& target, int cpu_s) {
  httplib::Client client(target.host, target.port);
  client.set_connection_timeout(kPatienceS);
  client.set_decompress(false);
  std::vector<Answer> answers;
  for (const Kind& kind : kinds()) {
    std::string path = target.path + "/debug/pprof/" + kind.path;
    std::chrono::seconds patience(kPatienceS);
    if (kind.types.front() == Type::go_cpu) {
      path += "?seconds=" + std::to_string(cpu_s);
      patience += std::chrono::seconds(cpu_s);
    }
    client.set_read_timeout(patience);
    const std::int64_t begin_unix_ns = unix_ns();
    answers.push_back({&kind, begin_unix_ns, asked(client, path, patience)});
    // If the first request fails, the others would fail in the same way.
    if (!answers.back().body && answers.size() == 1) break;
  }
  return answers;
}

// Writes a line, and the bytes whose number it ends in.
void put(int to, const std::string& line, const std::string& bytes) {
  std::size_t written = 0;
  const std::string text = line + " " + std::to_string(bytes.size()) + "\n" + bytes;
  static_cast<void>(write_all(to, text, &written));
}

// Stores one type of an answer.
Result<void> keep(const Answer& answer, Type type, const std::map<Type, std::string>& bases,
                  int to) {
  const std::string path = std::string("its profile ") + answer.kind->path;
  Result<NamedProfile> now = stacks::read_pprof(*answer.body, path, quantity_of(type));
  if (!now) return now.error();
  const std::string name = name_of(type);
  if (!counts_from_start(type)) {
    put(to, "part " + name + " " + std::to_string(answer.begin_unix_ns), stacks::pprof(*now, 0));
    return {};
  }
  put(to, "base " + name + " 0", stacks::pprof(*now, 0));
  const auto base = bases.find(type);
  if (base == bases.end()) return {};
  const Result<NamedProfile> before = stacks::read_pprof(base->second, path, quantity_of(type));
  if (!before) return before.error();
  put(to, "part " + name + " " + std::to_string(answer.begin_unix_ns),
      stacks::pprof(difference(*before, *now), 0));
  return {};
}

// A key by which equal stacks of two profiles are found: the functions and modules of the stack.
std::string key_of(const NamedProfile& profile, const NamedProfile::Stack& stack) {
  std::string key;
  for (const std::uint32_t id : stack.functions) {
    const NamedProfile::Function& function = profile.functions[id];
    key.append(function.name).append("\n").append(function.module).append("\n");
  }
  return key;
}

std::map<std::string, Weight> weights_of(const NamedProfile& profile) {
  std::map<std::string, Weight> weights;
  for (const NamedProfile::Stack& stack : profile.stacks) {
    weights[key_of(profile, stack)] += stack.weight;
  }
  return weights;
}

std::optional<std::uint64_t> number_in(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// The four words of a line: "part", a type, an instant, the number of bytes that follow.
struct Head {
  std::string what;
  std::string type;
  std::uint64_t instant = 0;
  std::uint64_t bytes = 0;
};

std::optional<Head> head_in(std::string_view line) {
  std::array<std::string_view, 4> words;
  for (std::string_view& word : words) {
    const std::size_t space = std::min(line.find(' '), line.size());
    word = line.substr(0, space);
    line.remove_prefix(std::min(space + 1, line.size()));
  }
  const std::optional<std::uint64_t> instant = number_in(words[2]);
  const std::optional<std::uint64_t> bytes = number_in(words[3]);
  if (!instant || !bytes || !line.empty()) return std::nullopt;
  return Head{std::string(words[0]), std::string(words[1]), *instant, *bytes};
}

// Takes one entry from the text. Returns false if the text does not begin with an entry.
bool take_entry(std::string_view& text, Pulled& pulled) {
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos) return false;
  const std::optional<Head> head = head_in(text.substr(0, end));
  if (!head || head->bytes > text.size() - end - 1) return false;
  std::string bytes(text.substr(end + 1, head->bytes));
  text.remove_prefix(end + 1 + head->bytes);
  if (head->what == "failed" || head->what == "late") {
    pulled.failures.push_back(std::move(bytes));
    pulled.late = pulled.late || head->what == "late";
    return true;
  }
  if (head->what == "answers") {
    pulled.bytes = std::min<std::uint64_t>(head->instant, kinds().size() * kMaxBytes);
    return true;
  }
  const std::optional<Type> type = type_named(head->type);
  if (!type) return false;
  if (head->what == "base") {
    pulled.bases[*type] = std::move(bytes);
  } else {
    pulled.parts[*type] = {std::move(bytes), static_cast<std::int64_t>(head->instant)};
  }
  return true;
}

}  // namespace

int pull_seconds(int every_s) {
  constexpr int kUsual = 10;
  return std::max(1, std::min(kUsual, every_s / 2));
}

NamedProfile difference(const NamedProfile& before, const NamedProfile& now) {
  const std::map<std::string, Weight> earlier = weights_of(before);
  const std::map<std::string, Weight> later = weights_of(now);
  const bool fell = std::any_of(earlier.begin(), earlier.end(), [&](const auto& one) {
    const auto found = later.find(one.first);
    return found == later.end() || found->second.samples < one.second.samples;
  });
  NamedProfile result = now;
  if (fell) return result;
  std::map<std::string, Weight> left = earlier;
  for (NamedProfile::Stack& stack : result.stacks) {
    Weight& past = left[key_of(result, stack)];
    const Weight taken{std::min(past.samples, stack.weight.samples),
                       std::min(past.value, stack.weight.value)};
    stack.weight = {stack.weight.samples - taken.samples, stack.weight.value - taken.value};
    past = {past.samples - taken.samples, past.value - taken.value};
  }
  std::erase_if(result.stacks, [](const NamedProfile::Stack& stack) {
    return stack.weight.samples == 0 && stack.weight.value == 0;
  });
  return result;
}

void pull(const PullTarget& target, const std::map<Type, std::string>& bases, int cpu_s, int to) {
  if (const Result<void> given_up = drop_root(); !given_up) {
    put(to, "failed all 0", given_up.error().message);
    put(to, "failed end 0", "");
    ::_exit(0);
  }
  const std::vector<Answer> answers = ask_all(target, cpu_s);
  confine::Bounds bounds;
  bounds.descriptors = {to};
  bounds.memory_bytes = std::uint64_t{4} << 30U;
  Result<void> confined = confine::confine_self(bounds);
  for (const Answer& answer : answers) {
    if (confined && !answer.body) {
      const bool late = answer.body.error().code == Code::deadline_exceeded;
      put(to, (late ? "late " : "failed ") + std::string(answer.kind->path) + " 0",
          answer.body.error().message);
    } else if (confined) {
      for (const Type type : answer.kind->types) {
        const Result<void> kept = keep(answer, type, bases, to);
        if (!kept) put(to, "failed " + std::string(name_of(type)) + " 0", kept.error().message);
      }
    }
  }
  if (!confined) put(to, "failed all 0", confined.error().message);
  std::size_t bytes = 0;
  for (const Answer& answer : answers) bytes += answer.body ? answer.body->size() : 0;
  put(to, "answers all " + std::to_string(bytes), "");
  put(to, "failed end 0", "");
  ::_exit(0);
}

namespace {

// Writes the targets, or the error, to `to`, and ends the process.
[[noreturn]] void say(const Result<PullTargets>& targets, int to) {
  std::size_t written = 0;
  static_cast<void>(write_all(to, list_text(targets), &written));
  ::_exit(0);
}

// Gives up all rights, and then parses the text: the owner of a pod can write anything into it.
// Writes the targets to `to`.
[[noreturn]] void say_targets_in(const Result<std::string>& text, const std::string& name, int to) {
  confine::Bounds bounds;
  bounds.descriptors = {to};
  bounds.memory_bytes = std::uint64_t{4} << 30U;
  const Result<void> confined = confine::confine_self(bounds);
  if (!confined) say(confined.error(), to);
  say(text ? pull_targets_in(*text, name) : Result<PullTargets>(text.error()), to);
}

}  // namespace

void list_file(const std::string& path, int to) {
  constexpr std::size_t kMaxFileBytes = std::size_t{64} << 20U;
  const Result<FileDescriptor> file = open_regular(path);
  say_targets_in(
      file ? read_all(file->get(), path, kMaxFileBytes) : Result<std::string>(file.error()), path,
      to);
}

void list_pods(const PodSource& source, int to) {
  if (const Result<void> given_up = drop_root(); !given_up) say(given_up.error(), to);
  const std::size_t path = source.address.find('/', source.address.find("://") + 3);
  const std::string host = source.address.substr(0, path);
  httplib::Client client(host);
  client.set_connection_timeout(kPatienceS);
  client.set_read_timeout(kPatienceS);
  client.set_decompress(false);
  if (!source.ca_file.empty()) client.set_ca_cert_path(source.ca_file);
  if (!source.token.empty()) client.set_bearer_token_auth(source.token);
  const Result<std::string> body =
      client.is_valid()
          ? asked(client, path == std::string::npos ? "/api/v1/pods" : source.address.substr(path),
                  std::chrono::seconds(kPatienceS))
          : Error{Code::invalid_argument,
                  "this is no address, or " + source.ca_file + " cannot be read as user nobody"};
  say_targets_in(body, "its answer", to);
}

Pulled pulled_in(const std::string& written) {
  Pulled pulled;
  std::string_view left = written;
  while (!left.empty() && take_entry(left, pulled)) {
  }
  // The last entry is an empty one.
  const bool whole = left.empty() && !pulled.failures.empty() && pulled.failures.back().empty();
  if (!whole) {
    Pulled nothing;
    nothing.failures = {"its answers could not be read"};
    return nothing;
  }
  pulled.failures.pop_back();
  return pulled;
}

}  // namespace kymo::profiles
