#pragma once

#include <string>

namespace kymo::test {

// A folder that shows another one through bindfs, and limits writing or reading to `rate` bytes per
// second ("256M"). It is unmounted at the end. bindfs is slower than `rate`: 64 MiB take seconds.
class SlowMount {
 public:
  enum class Slow { writing, reading, reading_by_root_alone };
  SlowMount(const std::string& source, std::string target, const std::string& rate,
            Slow slow = Slow::writing);
  ~SlowMount();
  SlowMount(const SlowMount&) = delete;
  SlowMount& operator=(const SlowMount&) = delete;
  // Returns false if bindfs does not work here.
  [[nodiscard]] bool mounted() const { return mounted_; }

 private:
  std::string target_;
  bool mounted_;
};

}  // namespace kymo::test
