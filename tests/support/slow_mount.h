#pragma once

#include <string>

namespace kymo::test {

// A folder that shows another through bindfs, and writes, or reads, no faster than `rate` ("256M").
// Unmounted at the end. bindfs holds its rate back more than it says: 64 MiB take seconds.
class SlowMount {
 public:
  enum class Slow { writing, reading, reading_by_root_alone };
  SlowMount(const std::string& source, std::string target, const std::string& rate,
            Slow slow = Slow::writing);
  ~SlowMount();
  SlowMount(const SlowMount&) = delete;
  SlowMount& operator=(const SlowMount&) = delete;
  // False: bindfs does not work here.
  [[nodiscard]] bool mounted() const { return mounted_; }

 private:
  std::string target_;
  bool mounted_;
};

}  // namespace kymo::test
