#include "checkpoint/preflight/report_messages.h"

namespace kymo::preflight {
namespace {

void set_message(const Finding& finding, v1::Finding& message) {
  message.set_grade(finding.grade == Grade::refuses ? v1::Finding::REFUSES : v1::Finding::WARNS);
  message.set_failure(finding.failure);
  message.set_what(finding.what);
  message.set_remedy(finding.remedy);
  message.set_count(finding.count);
  for (const Place& place : finding.places) {
    v1::Finding::Place& to = *message.add_places();
    to.set_pid(place.pid);
    to.set_process(place.process);
    if (place.fd >= 0) to.set_fd(place.fd);
    to.set_object(place.object);
  }
}

Finding finding_of(const v1::Finding& message) {
  Finding finding;
  finding.grade = message.grade() == v1::Finding::REFUSES ? Grade::refuses : Grade::warns;
  finding.failure = message.failure();
  finding.what = message.what();
  finding.remedy = message.remedy();
  finding.count = message.count();
  for (const v1::Finding::Place& place : message.places()) {
    finding.places.push_back(
        {place.pid(), place.process(), place.has_fd() ? place.fd() : -1, place.object()});
  }
  return finding;
}

}  // namespace

v1::CheckResponse to_api(const Report& report) {
  v1::CheckResponse message;
  message.set_pid(report.pid);
  message.set_processes(report.processes);
  message.set_memory_bytes(report.memory_bytes);
  message.set_deleted_bytes(report.deleted_bytes);
  message.set_shared_memory_bytes(report.shared_memory_bytes);
  for (const Finding& finding : report.findings) set_message(finding, *message.add_findings());
  for (const pid_t ended : report.ended) message.add_ended(ended);
  for (const std::string& part : report.not_seen) message.add_not_seen(part);
  return message;
}

Report report_of(const v1::CheckResponse& message) {
  Report report;
  report.pid = message.pid();
  report.processes = message.processes();
  report.memory_bytes = message.memory_bytes();
  report.deleted_bytes = message.deleted_bytes();
  report.shared_memory_bytes = message.shared_memory_bytes();
  for (const v1::Finding& finding : message.findings()) {
    report.findings.push_back(finding_of(finding));
  }
  report.ended.assign(message.ended().begin(), message.ended().end());
  report.not_seen.assign(message.not_seen().begin(), message.not_seen().end());
  return report;
}

}  // namespace kymo::preflight
