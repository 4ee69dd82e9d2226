#pragma once

#include <sys/types.h>

#include <vector>

#include "kymo/result.h"

namespace kymo::runtime {

// Gives back the network of processes whose CRIU was killed while it dumped them. CRIU drops their
// packets meanwhile, by iptables: those of each TCP connection (rules with the mark 0xC114 in
// INPUT and OUTPUT, criu/netfilter.c) and, of a network namespace of their own, all (a chain CRIU,
// criu/net.c). Removes those rules, of these processes alone, and takes their sockets out of
// repair mode. Call it once CRIU has ended; where it left nothing, nothing is changed.
//
// Not removed: what CRIU has locked by nftables, where its configuration says so (table "inet
// CRIU-PID").
//
// `tree`: the processes, the root first. Threads: any; blocks. Errors: what stays, and how it is
// removed. Cost: a look at the rules of IPv4 and IPv6, some 5 ms each, where there are connections
// or a network namespace of their own; else none.
Result<void> give_back_network(const std::vector<pid_t>& tree);

}  // namespace kymo::runtime
