#pragma once

#include <cstddef>
#include <vector>

namespace plexaura {

// The last values of a series of any length, in bounded memory.
class RecentValues {
 public:
  static constexpr std::size_t most = 1000;

  void add(double value);
  double median() const;  // median of the last `most` values; 0 if there are none

 private:
  std::vector<double> values_;
  std::size_t oldest_ = 0;  // index of the value that is overwritten next, once there are `most` values
};

}  // namespace plexaura
