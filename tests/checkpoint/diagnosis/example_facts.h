#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "checkpoint/diagnosis/verdict.h"

namespace kymo::diagnosis {

inline constexpr std::uint64_t kOneMs = 1'000'000;

// A dump of 256 MiB that took 1.2 s. The process stood still for 1 s. No rule finds a cause.
inline Facts healthy_dump() {
  Facts facts;
  facts.cpus = 2;
  facts.duration_ns = 1200 * kOneMs;
  facts.phases = {{"prepare", 0, 100 * kOneMs, 0, "", false},
                  {"freeze", 100 * kOneMs, 110 * kOneMs, 0, "", true},
                  {"collect", 110 * kOneMs, 200 * kOneMs, 0, "", true},
                  {"memory: finding pages", 200 * kOneMs, 400 * kOneMs, 0, "", true},
                  {"memory: writing pages", 400 * kOneMs, 1000 * kOneMs, 0, "", true},
                  {"processes and files", 1000 * kOneMs, 1050 * kOneMs, 0, "", true},
                  {"resume or end", 1050 * kOneMs, 1100 * kOneMs, 0, "", true},
                  {"finish", 1100 * kOneMs, 1200 * kOneMs, 0, "", false}};
  facts.dump.emplace();
  facts.dump->freezing_time_us = 900;
  facts.dump->frozen_time_us = 999'100;
  facts.dump->pages_written = 65536;  // 256 MiB
  facts.signals.cpu_ns = 150 * kOneMs;
  facts.signals.cpu_wait_ns = 20 * kOneMs;
  facts.signals.disk_wait_ns = 10 * kOneMs;
  facts.signals.steal_ns = 0;
  return facts;
}

inline Facts healthy_restore() {
  Facts facts;
  facts.restore = true;
  facts.duration_ns = 1000 * kOneMs;
  facts.phases = {{"prepare", 0, 50 * kOneMs, 0, "", false},
                  {"memory: reading pages", 50 * kOneMs, 900 * kOneMs, 0, "", false},
                  {"finish", 900 * kOneMs, 1000 * kOneMs, 0, "", false}};
  facts.signals.cpu_ns = 500 * kOneMs;
  facts.signals.faults = 1000;
  return facts;
}

inline std::string first_rule(const Facts& facts) {
  const Verdict verdict = explain(facts);
  EXPECT_LE(verdict.lines.size(), 8U);
  return verdict.findings.empty() ? "" : verdict.findings.front().rule;
}

}  // namespace kymo::diagnosis
