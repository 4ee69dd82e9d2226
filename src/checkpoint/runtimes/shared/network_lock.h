#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/file.h"
#include "checkpoint/criu/repair/connections.h"
#include "kymo/result.h"

namespace kymo::runtime {

// Gives processes their network back if CRIU was killed while it dumped them. During a dump CRIU
// drops packets with iptables: those of each TCP connection (rules with the mark 0xC114 in INPUT
// and OUTPUT, criu/netfilter.c), and all packets if the processes have their own network namespace
// (a chain CRIU, criu/net.c). This function removes those rules, but only for these processes, and
// takes their sockets out of repair mode. If CRIU left nothing, it changes nothing. Call it after
// CRIU has ended.
//
// CRIU can be configured to use nftables instead. It then makes a table "inet CRIU-ID", in which ID
// is a pid or, since CRIU 4.1, an id of the run. The program nft removes the table. Without that
// program it stays.
//
// `tree`:  the processes, the root first.
// Threads: any; blocks.
// Errors:  say which rules may remain, and how to find them.
// Cost:    reading the rules of IPv4, IPv6 and nftables, about 5 ms each, if the processes have
//          connections or their own network namespace. Otherwise none.
Result<void> give_back_network(const std::vector<pid_t>& tree);

// The network namespace of processes that are to be dumped, if it is not that of this program. When CRIU ends the
// processes, it leaves its lock of the whole namespace to their restore. Others who live there would be cut off until then,
// or for ever.
//
// Threads: any; blocks.
class NetworkOfDump {
 public:
  NetworkOfDump() = default;
  // Call it before the dump. `process`: one of those that are to be dumped.
  explicit NetworkOfDump(pid_t process);

  // Takes CRIU's lock away if somebody else lives in the namespace. Call it when the processes, `tree`, have ended.
  // Returns the pid of one of the others. 0: there is nobody else, or the namespace is that of this program.
  // Errors: as give_back_network().
  // Cost:   as give_back_network(), and a system call for each process of the machine.
  [[nodiscard]] Result<pid_t> give_back_to_others(const std::vector<pid_t>& tree) const;

 private:
  FileDescriptor namespace_;
};

// The names of CRIU's tables in `rules`, the output of `nft -n list ruleset inet`: those with one of
// the connections, and the table of this pid. With `whole_network` all of CRIU's tables.
std::vector<std::string> criu_tables_in(const std::string& rules,
                                        const std::vector<criu::Connection>& connections, pid_t pid,
                                        bool whole_network);

}  // namespace kymo::runtime
