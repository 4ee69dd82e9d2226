#include "daemon/stored/shown_files.h"

#include <string>
#include <utility>

#include "daemon/state/pieces.h"
#include "daemon/stored/catalogue.h"

namespace kymo::daemon {

Result<v1::ReadCheckpointResponse> read_checkpoint(const Parts& parts,
                                                   const v1::ReadCheckpointRequest& request) {
  const Result<store::Checkpoint> checkpoint = find_checkpoint(parts.store, request.checkpoint());
  if (!checkpoint) return checkpoint.error();
  const confine::Helper& helper = parts.foreign.helper();
  v1::ReadCheckpointResponse out;
  if (request.file().empty()) {
    Result<std::vector<std::string>> names = shown_files_in(helper, checkpoint->directory);
    if (!names) return names.error();
    for (std::string& name : *names) out.add_files(std::move(name));
    return out;
  }
  Result<std::string> piece =
      piece_of(helper, checkpoint->directory, request.file(), request.offset());
  if (!piece) return piece.error();
  out.set_content(*std::move(piece));
  return out;
}

Result<v1::ReadOutputResponse> read_output(const Parts& parts,
                                           const v1::ReadOutputRequest& request) {
  const Result<store::Job> job = parts.jobs.find(request.job());
  if (!job) return job.error();
  if (job->stdout_path.empty()) {
    return Error{Code::failed_precondition,
                 "read the output of job " + job->name + ": kymod does not have it"};
  }
  const confine::Helper& helper = parts.foreign.helper();
  const auto read = [&](const std::string& path, std::uint64_t offset) {
    return request.has_tail_lines() ? output_tail(helper, path, request.tail_lines())
                                    : output_from(helper, path, offset);
  };
  Result<OutputPiece> out = read(job->stdout_path, request.out_offset());
  if (!out) return out.error();
  Result<OutputPiece> err = read(job->stderr_path, request.err_offset());
  if (!err) return err.error();
  v1::ReadOutputResponse response;
  response.set_out(std::move(out->text));
  response.set_err(std::move(err->text));
  response.set_out_offset(out->offset);
  response.set_err_offset(err->offset);
  return response;
}

}  // namespace kymo::daemon
