#include "report/api_json.h"

namespace kymo::report {

nlohmann::json to_json(const v1::Recorder& recorder) {
  return {{"running", recorder.running()},
          {"interval_ns", recorder.interval_ns()},
          {"metrics", recorder.metrics()},
          {"log_path", recorder.log_path()},
          {"start_unix_ns", recorder.start_unix_ns()},
          {"duration_ns", recorder.duration_ns()},
          {"kept_ns", recorder.kept_ns()},
          {"ticks_due", recorder.ticks_due()},
          {"rows_written", recorder.rows_written()},
          {"ticks_missed", recorder.ticks_missed()}};
}

}  // namespace kymo::report
