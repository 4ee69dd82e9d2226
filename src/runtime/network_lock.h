#pragma once

#include <sys/types.h>

#include <vector>

#include "kymo/result.h"

namespace kymo::runtime {

// Gives processes their network back if CRIU was killed while it dumped them. During a dump CRIU
// drops packets with iptables: those of each TCP connection (rules with the mark 0xC114 in INPUT
// and OUTPUT, criu/netfilter.c), and all packets if the processes have their own network namespace
// (a chain CRIU, criu/net.c). This function removes those rules, but only for these processes, and
// takes their sockets out of repair mode. If CRIU left nothing, it changes nothing. Call it after
// CRIU has ended.
//
// CRIU can be configured to use nftables instead (table "inet CRIU-PID"). This function does not
// remove that table.
//
// `tree`:  the processes, the root first.
// Threads: any; blocks.
// Errors:  say which rules may remain, and how to find them.
// Cost:    reading the rules of IPv4 and IPv6, about 5 ms each, if the processes have connections
//          or their own network namespace. Otherwise none.
Result<void> give_back_network(const std::vector<pid_t>& tree);

}  // namespace kymo::runtime
