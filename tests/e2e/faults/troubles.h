#pragma once

#include <string>

#include "e2e/faults/scene.h"
#include "e2e/faults/table.h"

// The troubles and ways of more than one topic.
namespace kymo::test {

// After these, CRIU goes on, or is killed.
void kill_criu(Scene& scene);
void crash_criu(Scene& scene);
// CRIU goes on without kymod. `_late`: the next kymod starts when CRIU has ended.
void kill_kymod(Scene& scene);
void kill_kymod_late(Scene& scene);
// Kills kymod, its children, CRIU, and the processes that have started CRIU: runc, and conmon for
// podman. So none of them can clean up. The processes that CRIU has restored live on.
void kill_all(Scene& scene);
// Kills the nearest ancestor of CRIU with this name. `stuck`: CRIU stays stopped.
std::function<void(Scene&)> kill_parent(const std::string& program, bool stuck = false);
// Kills the nearest ancestor of the container itself with this name.
std::function<void(Scene&)> kill_parent_of_container(const std::string& program);
// Ends the request by `kymo cancel`. It may have ended already.
void cancel(Scene& scene);
// The disk of the checkpoints gets this mood (MoodyDisk::be).
std::function<void(Scene&)> disk_is(const std::string& mood);
// Each CRIU runs these words of a shell instead.
std::function<void(Scene&)> criu_does(const std::string& words);

inline const Way kStream{"AStream", Kind::process, {}};
inline const Way kProcess{"AProcess", Kind::process};
inline const Way kNoStream{"NoStream", Kind::process, {"--no-stream"}, true};
inline const Way kConnection{"AConnection", Kind::connected, {"--tcp-established"}};
inline const Way kRunc{"Runc", Kind::runc, {"--deadline", "1m"}};
inline const Way kRuncWithoutDeadline{"RuncWithoutDeadline", Kind::runc, {}, true};
inline const Way kPodman{"Podman", Kind::podman, {"--deadline", "1m"}};
inline const Way kContainerd{"Containerd", Kind::containerd, {"--deadline", "1m"}};
inline const Way kDocker{"Docker", Kind::docker, {"--deadline", "1m"}};

// The same, but the dump leaves it running.
inline Way that_runs_on(Way way) {
  way.name += "ThatRunsOn";
  way.flags.emplace_back("--leave-running");
  way.runs_on = true;
  return way;
}

inline constexpr Point kAtOnce{"AtOnce", nullptr, Point::At::kNone};
inline constexpr Point kBeforeCriuBegins{"BeforeCriuBegins", nullptr, Point::At::kWrapper};
inline constexpr Point kBegins{"WhenCriuBegins", "Version: "};
inline constexpr Point kBeforeItFreezes{"BeforeItFreezes", "pre-dump"};
inline constexpr Point kWritesPages{"WhenItWritesPages", "Dumping pages (type"};
inline constexpr Point kAllIsWritten{"WhenAllIsWritten", "post-dump"};
inline constexpr Point kEnds{"WhenItEnds", "Dumping finished"};
inline constexpr Point kBeforeItForks{"BeforeItForks", "pre-restore"};
inline constexpr Point kMemoryIsBack{"WhenMemoryIsBack", "post-restore"};
inline constexpr Point kBeforeItResumes{"BeforeItResumes", "pre-resume"};
inline constexpr Point kRuns{"WhenItRuns", "post-resume"};

}  // namespace kymo::test
