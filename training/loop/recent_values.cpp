#include "training/loop/recent_values.h"

#include <algorithm>

namespace plexaura {

void RecentValues::add(double value) {
  if (values_.size() < most) {
    values_.push_back(value);
    return;
  }
  values_[oldest_] = value;
  oldest_ = (oldest_ + 1) % most;
}

double RecentValues::median() const {
  if (values_.empty()) return 0;
  std::vector<double> values = values_;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace plexaura
