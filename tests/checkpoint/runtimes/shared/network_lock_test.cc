#include "checkpoint/runtimes/shared/network_lock.h"

#include <gtest/gtest.h>

namespace kymo::runtime {
namespace {

using Names = std::vector<std::string>;

// Rules as nft prints them: a table of a user, the tables of two CRIUs, and the empty table of a
// third one.
constexpr char kRules[] = R"(table inet filter {
	set conns4 {
		type ipv4_addr . inet_service . ipv4_addr . inet_service
		elements = { 10.0.0.1 . 80 . 10.0.0.2 . 5000 }
	}
}
table inet CRIU-6f1c2b1e-41b7-4a8c-9c3f-3a4f7be2a001 {
	set conns4 {
		type ipv4_addr . inet_service . ipv4_addr . inet_service
		elements = { 110.0.0.1 . 80 . 10.0.0.2 . 5000,
			     10.0.0.1 . 80 . 10.0.0.2 . 5000,
			     10.0.0.2 . 5000 . 10.0.0.1 . 80 }
	}

	chain output {
		type filter hook output priority filter; policy accept;
		meta mark != 0x0000c114 ip saddr . tcp sport . ip daddr . tcp dport @conns4 drop
	}
}
table inet CRIU-99 {
	set conns6 {
		type ipv6_addr . inet_service . ipv6_addr . inet_service
		elements = { fd00::1 . 80 . fd00::2 . 5000 }
	}
}
table inet CRIU-4711 {
}
)";

Names tables_of(const criu::Connection& connection, pid_t pid = 1) {
  return criu_tables_in(kRules, {connection}, pid, false);
}

TEST(NetworkLockTest, OnlyTheTablesOfTheseConnectionsAreFound) {
  const Names first{"CRIU-6f1c2b1e-41b7-4a8c-9c3f-3a4f7be2a001"};
  EXPECT_EQ(tables_of({false, "10.0.0.1", "10.0.0.2", 80, 5000}), first);
  EXPECT_EQ(tables_of({false, "10.0.0.2", "10.0.0.1", 5000, 80}), first)
      << "the other end of the same connection";
  EXPECT_EQ(tables_of({true, "fd00::2", "fd00::1", 5000, 80}), Names{"CRIU-99"});
  EXPECT_EQ(tables_of({false, "0.0.0.1", "10.0.0.2", 80, 5000}), Names{})
      << "the address is only a part of the one in the table";
  EXPECT_EQ(tables_of({false, "10.0.0.1", "10.0.0.2", 80, 50}), Names{});
}

TEST(NetworkLockTest, TheTableOfThePidIsFoundAndInItsOwnNetworkAllOfCriu) {
  EXPECT_EQ(criu_tables_in(kRules, {}, 4711, false), Names{"CRIU-4711"});
  EXPECT_EQ(criu_tables_in(kRules, {}, 471, false), Names{});
  EXPECT_EQ(criu_tables_in(kRules, {}, 1, true),
            (Names{"CRIU-6f1c2b1e-41b7-4a8c-9c3f-3a4f7be2a001", "CRIU-99", "CRIU-4711"}));
  EXPECT_EQ(criu_tables_in("", {}, 1, true), Names{});
}

// A container can give its tables any names, and nft would read such a name as a part of its
// command.
TEST(NetworkLockTest, ATableWithMoreThanANameIsLeft) {
  EXPECT_EQ(criu_tables_in("table inet CRIU-1; flush ruleset {\n}\ntable inet CRIU-1\"x {\n}\n", {},
                           1, true),
            Names{});
}

}  // namespace
}  // namespace kymo::runtime
