#include "runtime/network_lock.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <string_view>

#include "base/file.h"
#include "criu/connections.h"
#include "kymo/scope.h"
#include "runtime/command.h"

namespace kymo::runtime {
namespace {

using criu::Connection;

constexpr std::chrono::milliseconds kRulesPatience{5000};
constexpr std::string_view kRuleMark = " ! --mark 0xc114 ";  // SOCCR_MARK of CRIU
constexpr std::string_view kRuleChain = "CRIU";
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
  const std::string path =
      "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(file.get());
  const Result<CommandOutcome> done =
      run_in(network, {iptables + "-restore", "-w", "--noflush", path});
  if (!done) return stays(done.error().message);
  return done->exit_status == 0 ? Result<void>() : stays("says: " + last_line(done->errors));
}

}  // namespace

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
  Result<void> done = give_back_by("iptables", network, connections);
  Result<void> done6 = give_back_by("ip6tables", network, connections);
  return done ? done6 : done;
}

}  // namespace kymo::runtime
