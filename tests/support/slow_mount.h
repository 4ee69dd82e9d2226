#pragma once

#include <string>

namespace kymo::test {

// A folder that shows another through bindfs, writing no faster than `rate` (bindfs' --write-rate:
// "256M"). Unmounted at the end. bindfs holds its rate back more than it says: 64 MiB take seconds.
class SlowMount {
 public:
  SlowMount(const std::string& source, std::string target, const std::string& rate);
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
