#include "daemon/state/stats_json.h"

#include <nlohmann/json.hpp>

#include "lens/report/api_json.h"
#include "lens/report/checkpoint_stats.h"

namespace kymo::daemon {
namespace {

// A message whose fields have the names of the figures.
template <class Message>
Message message_of(const std::vector<criu::StatsFigure>& figures) {
  Message out;
  const google::protobuf::Reflection* const fields = Message::GetReflection();
  for (const criu::StatsFigure& figure : figures) {
    const auto* const field = Message::descriptor()->FindFieldByName(figure.name);
    if (field == nullptr) continue;  // a test finds such a figure
    if (field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_UINT32) {
      fields->SetUInt32(&out, field, static_cast<std::uint32_t>(figure.value));
    } else {
      fields->SetUInt64(&out, field, figure.value);
    }
  }
  return out;
}

}  // namespace

nlohmann::json to_json(const criu::DumpStats& stats) {
  return report::json_of(figures(stats));
}

nlohmann::json to_json(const criu::RestoreStats& stats) {
  return report::json_of(figures(stats));
}

nlohmann::json to_json(const std::vector<runtime::PreDumpRound>& rounds) {
  nlohmann::json all = nlohmann::json::array();
  for (const runtime::PreDumpRound& round : rounds) {
    all.push_back(report::to_json(to_api(round)));
  }
  return all;
}

v1::PreDump to_api(const runtime::PreDumpRound& round) {
  v1::PreDump out;
  out.set_duration_ns(round.duration_ns);
  out.set_criu_time_ns(round.criu_time_ns);
  out.set_pages_written(round.pages_written);
  out.set_frozen_time_us(round.frozen_time_us);
  out.set_image_bytes(round.image_bytes);
  return out;
}

std::uint64_t stood_still_ns(const v1::DumpStats& stats) {
  constexpr std::uint64_t kNanosPerMicro = 1000;
  return (std::uint64_t{stats.freezing_time_us()} + stats.frozen_time_us()) * kNanosPerMicro;
}

v1::DumpStats to_api(const criu::DumpStats& stats) {
  return message_of<v1::DumpStats>(figures(stats));
}

v1::RestoreStats to_api(const criu::RestoreStats& stats) {
  return message_of<v1::RestoreStats>(figures(stats));
}

}  // namespace kymo::daemon
