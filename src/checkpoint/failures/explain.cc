#include "checkpoint/failures/explain.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>

namespace kymo::failures {
namespace {

constexpr std::string_view kNoSpace = "No space left on device";
constexpr std::string_view kMark = "(failure ";
constexpr std::string_view kCriu = "; CRIU: ";
constexpr std::string_view kTime = "; where the time went: ";
constexpr std::string_view kHelps = "; what helps: ";
constexpr std::string_view kLog = ") (log: ";  // what follows one_line() in the error of a request

Explanation of_entry(const Entry& entry) {
  return {entry.id, entry.what, entry.why, entry.remedy, entry.retry, {}, {}};
}

// An error of CRIU, without the place in its source.
std::string_view without_place(std::string_view line) {
  const std::size_t end = line.find("): ");
  const bool placed = line.starts_with("Error (") || line.starts_with("Warn  (");
  return placed && end != std::string_view::npos ? line.substr(end + 3) : line;
}

// Memory and descriptors run out with the same code.
bool is_disk_full(const Error& error) {
  const auto says = [&](const char* text) { return error.message.find(text) != std::string::npos; };
  return error.errno_value == ENOSPC || error.errno_value == EDQUOT || says("No space left") ||
         says("there is no room for its images") || says("no space left") || says(" is full");
}

// What a code of kymod says of a request that it refused.
std::string_view id_of(Code code) {
  switch (code) {
    case Code::data_loss:
      return "damaged-images";
    case Code::not_found:
      return "not-found";
    case Code::failed_precondition:
    case Code::already_exists:
      return "not-now";
    case Code::unavailable:
      return "not-known-yet";
    case Code::invalid_argument:
    case Code::out_of_range:
      return "wrong-request";
    case Code::unimplemented:
      return "unsupported";
    default:
      return {};
  }
}

// Whether CRIU ended without a result: as kymod says of a CRIU that it started, and as runc says of its own.
bool has_criu_died(std::string_view error) {
  constexpr std::string_view kStarted = "criu '";
  if (error.find("read unixpacket @->@: EOF") != std::string_view::npos) return true;
  const std::size_t criu = error.find(kStarted);
  if (criu == std::string_view::npos) return false;
  const std::string_view rest = error.substr(criu);
  return rest.find("' was ended by signal ") != std::string_view::npos ||
         rest.find("' exited with status ") != std::string_view::npos;
}

// The id of the entry for a failure of kymod itself. Empty if the error says too little.
// `of_criu`: CRIU's log explained nothing, so the code is not kymod's.
std::string_view own_id(const Error& error, bool of_criu) {
  if (error.message.starts_with("kymod stopped during the ")) return "kymod-ended";
  if (is_disk_full(error)) return "disk-full";
  if (has_criu_died(error.message)) return "criu-died";
  if (!of_criu) {
    // kymod finds that before CRIU does.
    if (error.message.find("its pid ") != std::string::npos &&
        error.code == Code::failed_precondition) {
      return "pid-taken";
    }
    if (const Entry* entry = own_entry_for(error.message); entry != nullptr) return entry->id;
  }
  switch (error.code) {
    case Code::cancelled:
      return "cancelled";
    case Code::deadline_exceeded:
      return "deadline";
    case Code::permission_denied:
      return "permission";
    default:
      return of_criu ? std::string_view() : id_of(error.code);
  }
}

// The names of programs keep their letters, also at the beginning of a sentence.
std::string with_capital(std::string text) {
  constexpr auto kNames = std::to_array<std::string_view>(
      {"runc", "crun", "podman", "containerd", "conmon", "kymod", "kymo", "fuse-overlayfs"});
  const std::string first = text.substr(0, text.find_first_of(" :,.'"));
  if (first == "criu") return text.replace(0, first.size(), "CRIU");
  if (std::find(kNames.begin(), kNames.end(), first) != kNames.end()) return text;
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 32);
  return text;
}

// Takes what happened and the remedy from a finding that kymod refused a request for ("it would fail: WHAT (PLACES).
// REMEDY"): it knows more than the entry, such as which program traces. `text`: up to the mark.
void take_finding(std::string_view text, Explanation& why) {
  constexpr std::string_view kBefore = "it would fail: ";
  constexpr std::string_view kBetween = "). ";
  const std::size_t before = text.find(kBefore);
  if (before == std::string_view::npos) return;
  const std::string_view finding = text.substr(before + kBefore.size());
  const std::size_t between = finding.find(kBetween);
  if (between == std::string_view::npos) return;
  why.what = finding.substr(0, between + 1);
  why.remedy = finding.substr(between + kBetween.size());
  if (why.remedy.ends_with(' ')) why.remedy.pop_back();
}

// The log names another cause or none: CRIU does not say why the tar failed that it calls for a tmpfs, and the end of its
// log may be missing.
Explanation of_full_disk(const Root& root) {
  Explanation why = of_entry(entry_of("disk-full"));
  why.what += " (" + root.full_disk + ": " + std::string(kNoSpace) + ")";
  why.step = root.step;
  return why;
}

// The explanation of an error without its times.
Explanation of_plain_error(const Error& error, std::string_view id_of_old) {
  const std::string& text = error.message;
  const std::size_t mark = text.rfind(kMark);
  if (mark != std::string::npos) {
    const std::size_t id = mark + kMark.size();
    const Entry& entry = entry_of(text.substr(id, text.find_first_of(";)", id) - id));
    Explanation why = of_entry(entry);
    const std::size_t root = text.find(kCriu, mark);
    if (root != std::string::npos) {
      const std::size_t begin = root + kCriu.size();
      why.root = text.substr(begin, std::min(text.find(kLog, begin), text.rfind(')')) - begin);
      why.remedy = remedy_for(entry, why.root);
    }
    const std::size_t from = text.rfind(why.what, mark);
    const std::size_t end = from == std::string::npos ? from : text.find(". " + why.remedy, from);
    if (end < mark) {
      why.what = text.substr(from, end - from);
    } else {
      const std::string_view all = text;
      take_finding(all.substr(0, mark), why);
    }
    if (why.id != "unknown" || !why.root.empty()) return why;
  }
  const std::string_view own =
      id_of_old.empty() ? own_id(error, mark != std::string::npos) : id_of_old;
  Explanation why = of_entry(entry_of(own));
  if (own.empty()) {
    why.why = "It did not fail in CRIU, or CRIU's log explains nothing.";
    why.remedy = "Read the error.";
  }
  why.what = text;
  return why;
}

}  // namespace

bool says_criu_died(std::string_view error) {
  return has_criu_died(error);
}

Explanation explain(const Root& root) {
  if (!root.full_disk.empty() && root.line.find(kNoSpace) == std::string::npos) {
    return of_full_disk(root);
  }
  const Entry* entry = entry_for(without_place(root.line));
  if (root.line.empty() && !root.failed && !root.finished) entry = &entry_of("criu-died");
  // A test of the kernel says in the same words what it says in a restore that failed.
  if (root.probe && entry != nullptr && entry->phase == "restore") entry = &entry_of("kerndat");
  // A restore writes no images: there, the same error is of a cgroup, for example.
  const bool of_restore = entry != nullptr && entry->phase == "restore";
  if (!of_restore && root.line.find(kNoSpace) != std::string::npos) {
    entry = &entry_of("no-space");
  }
  // What the kernel kills writes no error, and what waits for it only says that it is gone.
  if (root.out_of_memory && (root.line.empty() || root.only_step))
    entry = &entry_of("memory-limit");
  if (entry == nullptr) entry = &entry_of(root.only_step ? "only-the-step" : "unknown");
  Explanation why = of_entry(*entry);
  why.remedy = remedy_for(*entry, without_place(root.line));
  const std::string detail = detail_of(*entry, without_place(root.line));
  if (!detail.empty()) {
    why.what += " (" + detail + ")";
  } else if (root.pid != 0) {
    why.what += " (process " + std::to_string(root.pid) + ")";
  }
  why.root = root.line;
  why.step = root.step;
  return why;
}

std::string one_line(const Explanation& why) {
  std::string text = why.what + ". " + why.remedy + " " + std::string(kMark) + why.id;
  if (!why.root.empty()) text += std::string(kCriu) + why.root;
  return text + ")";
}

std::string text_of(const Explanation& why, std::string_view log) {
  std::string text = with_capital(why.what) + ".\n\nWhy:     " + why.why +
                     "\nRemedy:  " + why.remedy + "\nRetry:   " + why.retry +
                     "\nFailure: " + why.id + "\n";
  if (!why.root.empty()) text += "CRIU:    " + why.root + "\n";
  if (!why.step.empty()) text += "Step:    " + why.step + "\n";
  if (!log.empty()) text += "Log:     " + std::string(log) + "\n";
  return text;
}

nlohmann::json to_json(const Explanation& why) {
  return {{"id", why.id},       {"what", why.what}, {"why", why.why},  {"remedy", why.remedy},
          {"retry", why.retry}, {"root", why.root}, {"step", why.step}};
}

Explanation from_json(const nlohmann::json& json) {
  const auto text = [&](const char* name) {
    const auto found = json.is_object() ? json.find(name) : json.end();
    return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  return {text("id"),    text("what"), text("why"), text("remedy"),
          text("retry"), text("root"), text("step")};
}

void add_time(Error& error, const std::string& where, const std::string& advice) {
  error.message += std::string(kTime) + where;
  if (!advice.empty()) error.message += std::string(kHelps) + advice;
}

Explanation of_error(const Error& error, std::string_view id) {
  const std::size_t time = error.message.rfind(kTime);
  if (time == std::string::npos) return of_plain_error(error, id);
  Error plain = error;
  plain.message.resize(time);
  Explanation why = of_plain_error(plain, id);
  const std::string told = error.message.substr(time + kTime.size());
  const std::size_t helps = told.rfind(kHelps);
  why.why += " " + told.substr(0, helps) + ".";
  if (helps != std::string::npos) why.remedy = told.substr(helps + kHelps.size());
  return why;
}

}  // namespace kymo::failures
