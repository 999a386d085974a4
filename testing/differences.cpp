#include "testing/differences.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace plexaura::testing {

namespace {

// Bounds the rounding errors of a value that is a short sum, and of the four values of a difference.
constexpr double roundings = 16 * std::numeric_limits<double>::epsilon();

}  // namespace

Differences::Differences(Runner& runner, std::vector<Tensor> at, const StepBlock& block)
    : runner_(runner), at_(std::move(at)), block_(block) {
  for (const Tensor& output : runner_(at_, block_)) {
    const std::vector<double> values = output.to_doubles();
    double largest = 0;
    for (const double value : values) largest = std::max(largest, std::abs(value));
    value_.insert(value_.end(), values.begin(), values.end());
    size_.resize(value_.size(), largest);
  }
}

std::vector<double> Differences::value_at(const Direction& direction, double distance) {
  std::vector<double> stood;
  for (const Move& move : direction) {
    double& element = at_[move.input].as<double>()[move.element];
    stood.push_back(element);
    element += distance * move.amount;
  }
  std::vector<double> value;
  for (const Tensor& output : runner_(at_, block_))
    for (const double element : output.to_doubles()) value.push_back(element);
  for (std::size_t i = 0; i < direction.size(); ++i)
    at_[direction[i].input].as<double>()[direction[i].element] = stood[i];
  return value;
}

Slopes Differences::along(const Direction& direction, double step) {
  const std::vector<double> far_below = value_at(direction, -2 * step);
  const std::vector<double> below = value_at(direction, -step);
  const std::vector<double> above = value_at(direction, step);
  const std::vector<double> far_above = value_at(direction, 2 * step);
  Slopes slopes;
  for (std::size_t i = 0; i < value_.size(); ++i) {
    slopes.central.push_back((far_below[i] - far_above[i] + 8 * (above[i] - below[i])) / (12 * step));
    slopes.below.push_back((3 * value_[i] - 4 * below[i] + far_below[i]) / (2 * step));
    slopes.above.push_back((4 * above[i] - 3 * value_[i] - far_above[i]) / (2 * step));
  }
  return slopes;
}

double Differences::rounding(const std::vector<double>& weights, double step) const {
  double sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) sum += std::pow(weights[i] * size_[i], 2);
  return roundings * std::sqrt(sum) / step;
}

}  // namespace plexaura::testing
