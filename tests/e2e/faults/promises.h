#pragma once

#include <string>

#include "e2e/faults/scene.h"
#include "e2e/faults/table.h"

// What promises say. Those that take a value make a Check of it.
namespace kymo::test {

// About the answer of the request.
void fails(Scene& scene);  // with one line
void succeeds(Scene& scene);
Check says(std::string text);
Check does_not_say(std::string text);
// It agrees with what became of the process, whatever that is. CRIU holds the process only if it
// writes the images.
void tells_the_truth(Scene& scene);

// About the newest checkpoint: its state now; its state in the end; the id of its failure.
Check listed(std::string state);
Check becomes(std::string state);
Check failure(std::string id);
void none_listed(Scene& scene);
void record_agrees(Scene& scene);  // its checkpoint.json says the same

// About the job.
Check job_is(std::string state);

// About the process. There is one copy, which never ended; there is none; in the end it runs on, or
// its checkpoint is complete and can be restored; or, after a restore, it runs, or can be restored
// with so many more requests.
void runs_on(Scene& scene);
void is_gone(Scene& scene);
void runs_or_is_restored(Scene& scene);
void is_restored(Scene& scene);
Check runs_after_restores(int most);
// It has not noticed that it was away.
void has_one_connection(Scene& scene);
// Its runtime knows it: it can be dumped and restored once more.
void is_dumped_again(Scene& scene);

// No process, no file and no mount of the request is left, nothing stands still, and the images
// have their final name if the checkpoint is complete, and only then.
void leaves_nothing(Scene& scene);

}  // namespace kymo::test
