#include "checkpoints/check_report.h"

#include <iostream>

#include "lens/report/human.h"
#include "verbs.h"

namespace kymo::cli {

void print_findings(const preflight::Report& report, const std::string& checked) {
  std::cout << "checked: " << report::printable(checked) << "\n";
  for (const preflight::Finding& finding : report.findings) {
    const bool refuses = finding.grade == preflight::Grade::refuses;
    std::cout << (refuses ? "refuses: " : "warns: ") << report::printable(line_of(finding)) << "\n";
  }
  for (const pid_t ended : report.ended) {
    std::cout << "process " << ended << " ended while it was looked at\n";
  }
  for (const std::string& part : report.not_seen) {
    std::cout << "not seen: " << report::printable(part) << "\n";
  }
}

std::string sum_of(const preflight::Report& report, const std::string& what) {
  const std::size_t refusing = report.refusing();
  if (refusing == 1) return "1 finding makes the " + what + " fail";
  if (refusing != 0) return std::to_string(refusing) + " findings make the " + what + " fail";
  std::string text = "nothing found that makes a " + what + " fail";
  if (const std::size_t warning = report.findings.size(); warning != 0) {
    text += "; " + std::to_string(warning) + (warning == 1 ? " finding may" : " findings may");
  }
  return report.not_seen.empty() ? text : text + "; not all could be seen";
}

int exit_code_of(const preflight::Report& report) {
  if (report.refusing() != 0) return 1;
  return report.not_seen.empty() ? 0 : kCannotTell;
}

}  // namespace kymo::cli
