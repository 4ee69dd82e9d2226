#include "checkpoint/runtimes/shared/network_lock.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include "base/fd_path.h"
#include "base/file.h"
#include "base/proc/process.h"
#include "checkpoint/criu/repair/connections.h"
#include "checkpoint/runtimes/shared/command.h"
#include "kymo/scope.h"

namespace kymo::runtime {
namespace {

using criu::Connection;

constexpr std::chrono::milliseconds kRulesPatience{5000};
constexpr std::string_view kRuleMark = " ! --mark 0xc114 ";  // SOCCR_MARK of CRIU
constexpr std::string_view kRuleChain = "CRIU";
constexpr char kTablePrefix[] = "CRIU-";
constexpr int kNoSuchProgram = 127;  // nsenter's exit code then

// Returns the network namespace of the process. Empty if it is the same as ours.
std::string foreign_network(pid_t pid) {
  std::error_code error;
  const std::string path = "/proc/" + std::to_string(pid) + "/ns/net";
  const auto its = std::filesystem::read_symlink(path, error);
  if (error) return {};
  const auto ours = std::filesystem::read_symlink("/proc/self/ns/net", error);
  return error || its == ours ? "" : path;
}

Result<CommandOutcome> run_in(const std::string& network, std::vector<std::string> words) {
  if (!network.empty()) words.insert(words.begin(), {"nsenter", "--net=" + network});
  Command command;
  command.words = std::move(words);
  command.environment = environment_with_path("/usr/sbin");
  command.timeout = kRulesPatience;
  return run_command(command);
}

// Returns the word after `key` in a rule as `iptables -S` prints it.
std::string_view rule_value(std::string_view rule, std::string_view key) {
  const std::size_t at = rule.find(key);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = rule.substr(at + key.size());
  return rest.substr(0, rest.find(' '));
}

// Whether the rule is for packets between the two ends of this connection, in either direction.
bool is_rule_of(std::string_view rule, const Connection& connection) {
  const auto runs = [&](const std::string& from, std::uint16_t from_port, const std::string& to,
                        std::uint16_t to_port) {
    const std::string_view bits = connection.ipv6 ? "/128" : "/32";
    return rule_value(rule, " -s ") == from + std::string(bits) &&
           rule_value(rule, " -d ") == to + std::string(bits) &&
           rule_value(rule, " --sport ") == std::to_string(from_port) &&
           rule_value(rule, " --dport ") == std::to_string(to_port);
  };
  return runs(connection.local, connection.local_port, connection.peer, connection.peer_port) ||
         runs(connection.peer, connection.peer_port, connection.local, connection.local_port);
}

// Returns the lines for iptables-restore that remove what CRIU has added to `rules`.
std::string rules_to_remove(const std::string& rules, const std::vector<Connection>& connections,
                            bool whole_network) {
  std::string lines;
  bool chain = false;
  std::istringstream text(rules);
  for (std::string rule; std::getline(text, rule);) {
    const bool of_connection =
        rule.starts_with("-A ") && rule.find(kRuleMark) != std::string::npos &&
        std::any_of(connections.begin(), connections.end(),
                    [&](const Connection& connection) { return is_rule_of(rule, connection); });
    const bool into_chain =
        whole_network && rule.starts_with("-A ") && rule_value(rule, " -j ") == kRuleChain;
    if (of_connection || into_chain) lines += "-D" + rule.substr(2) + "\n";
    chain = chain || (whole_network && rule == "-N CRIU");
  }
  if (chain) lines += "-F CRIU\n-X CRIU\n";
  return lines;
}

Result<void> give_back_by(const std::string& iptables, const std::string& network,
                          const std::vector<Connection>& connections) {
  const Result<CommandOutcome> rules = run_in(network, {iptables, "-w", "-S"});
  // Without iptables CRIU could not add any rules.
  if (!rules && rules.error().code == Code::not_found) return {};
  const auto stays = [&](const std::string& why) {
    return Error{Code::internal, "its connections may stay blocked: " + iptables + " " + why +
                                     "; look for CRIU's rules with " + iptables + " -S"};
  };
  if (!rules) return stays(rules.error().message);
  if (rules->exit_status == kNoSuchProgram) return {};
  if (rules->exit_status != 0) return stays("says: " + last_line(rules->errors));
  const std::string lines = rules_to_remove(rules->output, connections, !network.empty());
  if (lines.empty()) return {};
  const FileDescriptor file(::memfd_create("rules", MFD_CLOEXEC));
  std::size_t written = 0;
  if (write_all(file.get(), "*filter\n" + lines + "COMMIT\n", &written) != 0) {
    return stays("could not be told");
  }
  const Result<CommandOutcome> done =
      run_in(network, {iptables + "-restore", "-w", "--noflush", path_through(file)});
  if (!done) return stays(done.error().message);
  return done->exit_status == 0 ? Result<void>() : stays("says: " + last_line(done->errors));
}

// One end of a connection, and the other, as nft prints an element of CRIU's sets.
std::string element_of(const std::string& from, std::uint16_t from_port, const std::string& to,
                       std::uint16_t to_port) {
  return from + " . " + std::to_string(from_port) + " . " + to + " . " + std::to_string(to_port);
}

std::set<std::string> elements_of(const std::vector<Connection>& connections) {
  std::set<std::string> all;
  for (const Connection& c : connections) {
    all.insert(element_of(c.local, c.local_port, c.peer, c.peer_port));
    all.insert(element_of(c.peer, c.peer_port, c.local, c.local_port));
  }
  return all;
}

// Whether one of the elements is in this line, between braces and commas.
bool holds_one_of(const std::set<std::string>& elements, std::string_view line) {
  constexpr std::string_view kBetween = "{},=";
  constexpr std::string_view kBlank = " \t";
  while (!line.empty()) {
    std::string_view part = line.substr(0, line.find_first_of(kBetween));
    line.remove_prefix(std::min(part.size() + 1, line.size()));
    part.remove_prefix(std::min(part.find_first_not_of(kBlank), part.size()));
    part = part.substr(0, part.find_last_not_of(kBlank) + 1);
    if (elements.contains(std::string(part))) return true;
  }
  return false;
}

// A container may have named a table: nft would take another name for more of its command.
bool is_name_of_criu(const std::string& name) {
  constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-";
  return name.starts_with(kTablePrefix) && name.find_first_not_of(kLetters) == std::string::npos;
}

Result<void> delete_tables(const std::string& network, const std::vector<Connection>& connections,
                           pid_t pid) {
  const Result<CommandOutcome> rules = run_in(network, {"nft", "-n", "list", "ruleset", "inet"});
  if (!rules && rules.error().code == Code::not_found) return {};
  const auto stays = [](const std::string& why) {
    return Error{Code::internal, "its connections may stay blocked: nft " + why +
                                     "; look for CRIU's tables with nft list tables inet"};
  };
  if (!rules) return stays(rules.error().message);
  if (rules->exit_status == kNoSuchProgram) return {};
  if (rules->exit_status != 0) {
    // Without nftables in the kernel CRIU could not make a table.
    const bool none = rules->errors.find("not supported") != std::string::npos;
    return none ? Result<void>() : stays("says: " + last_line(rules->errors));
  }
  Result<void> all;
  for (const std::string& table :
       criu_tables_in(rules->output, connections, pid, !network.empty())) {
    const Result<CommandOutcome> done = run_in(network, {"nft", "delete", "table", "inet", table});
    if (!done) {
      all = stays(done.error().message);
    } else if (done->exit_status != 0) {
      all = stays("says: " + last_line(done->errors));
    }
  }
  return all;
}

Result<void> remove_lock(const std::string& network, const std::vector<Connection>& connections,
                         pid_t pid) {
  Result<void> done = give_back_by("iptables", network, connections);
  Result<void> done6 = give_back_by("ip6tables", network, connections);
  Result<void> tables = delete_tables(network, connections, pid);
  if (done && done6) return tables;
  return done ? done6 : done;
}

}  // namespace

std::vector<std::string> criu_tables_in(const std::string& rules,
                                        const std::vector<Connection>& connections, pid_t pid,
                                        bool whole_network) {
  constexpr std::string_view kTable = "table inet ";
  constexpr std::size_t kMaxTables = 16;  // a container may have made any number
  const std::set<std::string> elements = elements_of(connections);
  std::vector<std::string> found;
  std::string table;  // of CRIU, in which the line is
  std::istringstream text(rules);
  for (std::string line; found.size() < kMaxTables && std::getline(text, line);) {
    if (line.starts_with(kTable)) {
      const std::string name = line.substr(kTable.size(), line.find(" {") - kTable.size());
      table = is_name_of_criu(name) ? name : "";
    }
    if (table.empty()) continue;
    if (whole_network || table == kTablePrefix + std::to_string(pid) ||
        holds_one_of(elements, line)) {
      found.push_back(std::exchange(table, ""));
    }
  }
  return found;
}

Result<void> give_back_network(const std::vector<pid_t>& tree) {
  if (tree.empty()) return {};
  const Scope scope("give back its network", {.category = "runtime"});
  std::vector<Connection> connections;
  for (const pid_t pid : tree) {
    criu::leave_repair_mode(pid);
    const std::vector<Connection> its = criu::connections_of(pid);
    connections.insert(connections.end(), its.begin(), its.end());
  }
  const std::string network = foreign_network(tree.front());
  if (connections.empty() && network.empty()) return {};
  return remove_lock(network, connections, tree.front());
}

NetworkOfDump::NetworkOfDump(pid_t process) {
  const std::string path = foreign_network(process);
  if (!path.empty()) namespace_ = FileDescriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

Result<pid_t> NetworkOfDump::give_back_to_others(const std::vector<pid_t>& tree) const {
  struct stat ours {};
  if (!namespace_.valid() || ::fstat(namespace_.get(), &ours) != 0) return 0;
  for (const pid_t pid : probe::all_processes()) {
    struct stat its {};
    const std::string path = "/proc/" + std::to_string(pid) + "/ns/net";
    if (::stat(path.c_str(), &its) != 0 || its.st_ino != ours.st_ino) continue;
    if (std::find(tree.begin(), tree.end(), pid) != tree.end()) continue;
    const Result<void> done = remove_lock(path_through(namespace_), {}, 0);
    return done ? Result<pid_t>(pid) : done.error();
  }
  return 0;
}

}  // namespace kymo::runtime
