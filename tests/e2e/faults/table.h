#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "e2e/counting.h"

// One table of faults: way × point × trouble → promise. A row becomes one test case for each of its
// ways and points (scene.h plays it, faults_test.cc lists them).
namespace kymo::test {

class Scene;

// What is dumped and restored, and how.
struct Way {
  std::string name;
  Kind kind;
  std::vector<std::string> flags{};  // of the dump
  bool writes_itself = false;        // CRIU writes the images itself, so it may wait for their disk
  bool runs_on = false;              // the dump leaves it running
  bool has_deleted_file = false;     // it has one open
  bool slow = false;
};

// The text that CRIU is about to write to its log when it is stopped.
struct Point {
  const char* name;
  const char* text;
  // kNone: CRIU is not stopped. kUnseen: nobody waits until it is. kWrapper: before CRIU begins.
  // kChild: when a process of it has made a deleted file.
  enum class At : std::uint8_t { kText, kNone, kUnseen, kWrapper, kChild } at = At::kText;
  bool slow = false;
};

// The request may end before CRIU comes to the point.
inline Point unseen(Point point) {
  point.at = Point::At::kUnseen;
  return point;
}

struct Trouble {
  const char* name = "";
  // Makes the trouble, when CRIU is stopped at the point; CRIU goes on only if this lets it.
  std::function<void(Scene&)> make{};
  // What is done before the request.
  std::function<void(Scene&)> prepare{};
};

// One thing that a promise says (promises.h). It fails the test if it does not hold.
using Check = std::function<void(Scene&)>;

// The disk that can stall and fail (MoodyDisk): of the checkpoint, or of kymod's state. On it kymod
// does not notice each change of an image.
enum class Moody : std::uint8_t { none, images, state };

enum class Request : std::uint8_t { dump, restore };

struct Row {
  std::string keeps;  // the words of docs/faults.md that the row keeps
  Request request{};
  std::vector<Way> ways{};
  std::vector<Point> points{};
  Trouble trouble{};
  std::vector<Check> meanwhile{};     // what holds at the answer, while the trouble lasts
  std::vector<Check> afterwards{};    // what holds when the trouble is over
  std::vector<std::string> flags{};   // more flags of the request
  std::vector<std::string> daemon{};  // more flags of kymod for the request
  Moody moody = Moody::none;          // the disk that the trouble is about
};

// Of ways and points, scripts/test plays few. `scripts/test --all` plays also those that are slow.
template <class T>
T slow(T one) {
  one.slow = true;
  return one;
}
template <class T>
std::vector<T> slow(std::vector<T> all) {
  for (T& one : all) one.slow = true;
  return all;
}

template <class T>
std::vector<T> operator+(std::vector<T> some, const std::vector<T>& more) {
  some.insert(some.end(), more.begin(), more.end());
  return some;
}

// The rows of all of them.
inline std::vector<Row> rows_of(std::initializer_list<std::vector<Row>> parts) {
  std::vector<Row> all;
  for (const std::vector<Row>& rows : parts) all.insert(all.end(), rows.begin(), rows.end());
  return all;
}

// The topics.
std::vector<Row> rows_of_dumps();
std::vector<Row> rows_of_restores();
std::vector<Row> rows_of_changed_images();
std::vector<Row> rows_of_requests_beside();

}  // namespace kymo::test
