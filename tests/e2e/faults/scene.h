#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "e2e/counting.h"
#include "e2e/faults/table.h"
#include "e2e/programs.h"
#include "support/breakable_criu.h"
#include "support/moody_disk.h"
#include "support/temporary_directory.h"

namespace kymo::test {

// Plays one row at one of its points: starts what counts, begins the request, makes the trouble
// when CRIU is stopped at the point, and checks the promise before and after the trouble is over.
class Scene {
 public:
  Scene(const Row& row, const Way& way, const Point& point);
  ~Scene();
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;

  void play();

  // What troubles and promises use.
  [[nodiscard]] const std::string& name() const { return counting->name(); }
  [[nodiscard]] bool of_container() const {
    return way.kind != Kind::process && way.kind != Kind::connected;
  }
  [[nodiscard]] std::string dir() const {
    return (row.moody == Moody::images ? disk->path() : folder.path()) + "/c";
  }
  [[nodiscard]] nlohmann::json checkpoint() const;  // the newest one in the list
  [[nodiscard]] nlohmann::json record() const;      // its checkpoint.json
  [[nodiscard]] nlohmann::json job() const { return kymod->job(name()); }
  // The words of a dump of this, to this directory.
  [[nodiscard]] std::vector<std::string> dump_to(const std::string& directory) const;
  // Lets CRIU go on, if it is stopped.
  void let_criu_go_on() const;
  // Waits until the client of the request has its answer.
  void wait_for_answer();
  // Another kymod of the machine, for the same runtime.
  Kymod& second();
  // The mounts on the machine that a killed CRIU or runc may have left, one a line.
  [[nodiscard]] static std::string leftover_mounts();

  const Row& row;
  const Way& way;
  const Point& point;
  TemporaryDirectory folder;
  TemporaryDirectory disk_folder;
  const BreakableCriu criu;
  std::optional<MoodyDisk> disk;
  std::unique_ptr<Counting> counting;
  std::optional<Kymod> kymod;
  pid_t stopped = 0;         // CRIU, stopped at the point
  Outcome answer;            // of the request
  std::uint64_t number = 0;  // to which it had counted before the request
  std::string mounts_before;
  std::string restore_from;    // what a restore names
  Kymod* requester = nullptr;  // the kymod that gets the request

 private:
  void start();
  void dump_first();
  void begin();
  void stop_at_point();
  void end_trouble();

  std::optional<Kymod> second_;
  std::thread client_;
};

}  // namespace kymo::test
