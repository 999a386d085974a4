#include "testing/values.h"

#include <fmt/format.h>

#include "core/base/error.h"
#include "core/ops/philox.h"

namespace plexaura::testing {

double Random::between(double low, double high) {
  const philox::Block block = philox::Draws(static_cast<std::int64_t>(seed_), 0, 0).block(drawn_++);
  const std::uint64_t bits = (std::uint64_t{block.words[0]} << 21) ^ (block.words[1] >> 11);
  return low + (high - low) * static_cast<double>(bits & ((std::uint64_t{1} << 53) - 1)) * 0x1p-53;
}

std::int64_t Random::below(std::int64_t count) {
  return static_cast<std::int64_t>(between(0, static_cast<double>(count)));
}

Tensor Random::tensor(const TensorType& type, double low, double high) {
  return make(type, testing::between(low, high), *this);
}

Values between(double low, double high) {
  return [=](std::span<double> values, Random& random) {
    for (double& value : values) value = random.between(low, high);
  };
}

Values away_from_zero(double smallest, double largest) {
  return [=](std::span<double> values, Random& random) {
    for (double& value : values) value = random.between(smallest, largest) * (random.below(2) == 0 ? 1 : -1);
  };
}

Values distinct(double spacing) {
  return [=](std::span<double> values, Random& random) {
    const auto count = static_cast<std::int64_t>(values.size());
    for (std::int64_t i = 0; i < count; ++i)
      values[static_cast<std::size_t>(i)] =
          spacing * (static_cast<double>(i) - 0.5 * static_cast<double>(count));
    for (std::int64_t i = count; i > 1; --i)
      std::swap(values[static_cast<std::size_t>(i - 1)], values[static_cast<std::size_t>(random.below(i))]);
  };
}

Values whole(std::int64_t low, std::int64_t high) {
  return [=](std::span<double> values, Random& random) {
    for (double& value : values) value = static_cast<double>(low + random.below(high - low));
  };
}

Values these(std::vector<double> given) {
  return [given = std::move(given)](std::span<double> values, Random&) {
    if (values.size() != given.size())
      throw UserError(
          fmt::format("a value of {} elements was given {} numbers", values.size(), given.size()));
    std::ranges::copy(given, values.begin());
  };
}

Tensor make(const TensorType& type, const Values& values, Random& random) {
  Tensor wide(TensorType{DType::float64, type.shape});
  values(wide.as<double>(), random);
  return wide.cast(type.dtype);
}

}  // namespace plexaura::testing
