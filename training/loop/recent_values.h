#pragma once

#include <cstddef>
#include <vector>

namespace plexaura {

// The last values of a series of any length, in bounded memory.
class RecentValues {
 public:
  static constexpr std::size_t most = 1000;

  void add(double value);
  double median() const;  // of the last `most`; 0 where there is none

 private:
  std::vector<double> values_;
  std::size_t oldest_ = 0;  // is overwritten next, once there are `most`
};

}  // namespace plexaura
