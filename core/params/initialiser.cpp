#include "core/params/initialiser.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numbers>
#include <span>

#include "core/base/splitmix.h"
#include "core/tensor/dispatch.h"

namespace plexaura {

namespace {

class Draws {
 public:
  Draws(std::string_view name, std::uint64_t seed) : key_(splitmix_scatter(seed + splitmix_step)) {
    for (const char letter : name)
      key_ = splitmix_scatter(key_ ^ static_cast<unsigned char>(letter)) + splitmix_step;
  }

  // Returns a number in (0, 1]; 1 by rounding. The streams 0 and 1 are independent.
  double uniform(std::int64_t index, std::uint64_t stream) const {
    const std::uint64_t counter = 2 * static_cast<std::uint64_t>(index) + stream;
    return (static_cast<double>(splitmix_scatter(key_ + counter * splitmix_step) >> 11) + 0.5) * 0x1p-53;
  }

  // Uses the method of Box and Muller, 1958.
  double normal(std::int64_t index) const {
    return std::sqrt(-2 * std::log(uniform(index, 0))) * std::cos(2 * std::numbers::pi * uniform(index, 1));
  }

 private:
  std::uint64_t key_;
};

std::span<double> row_of(std::span<double> elements, const TensorType& type, std::string_view name,
                         std::int64_t row) {
  const std::int64_t rows = type.shape.rank() == 0 ? 0 : type.shape[0];
  if (row < 0 || row >= rows)
    throw UserError(fmt::format(
        "the initialiser of the parameter '{}' sets row {} to 0 and the parameter is {}; rows count from 0",
        name, row, to_string(type)));
  const std::size_t width = elements.size() / static_cast<std::size_t>(rows);
  return elements.subspan(static_cast<std::size_t>(row) * width, width);
}

double fan_of(const Shape& shape, Initialiser::Fan fan) {
  if (shape.rank() == 0) return 1;
  double rest = 1;
  for (std::int64_t axis = 2; axis < shape.rank(); ++axis) rest *= static_cast<double>(shape[axis]);
  const double out = static_cast<double>(shape[0]) * rest;
  const double in = shape.rank() > 1 ? static_cast<double>(shape[1]) * rest : out;
  if (fan == Initialiser::Fan::in) return in;
  return fan == Initialiser::Fan::out ? out : (in + out) / 2;
}

Tensor given_values(const Initialiser& initialiser, const TensorType& type, std::string_view name) {
  if (initialiser.zero_row)
    throw UserError(fmt::format(
        "the initialiser of the parameter '{}' gives its values and a row of zeros; leave out one of them",
        name));
  const Tensor values = initialiser.read();
  if (values.shape() != type.shape)
    throw UserError(
        fmt::format("the parameter '{}' is {}, but its initial values are {}; give values of its shape", name,
                    to_string(type), to_string(values.type())));
  return values.cast(type.dtype);
}

}  // namespace

Initialiser Initialiser::uniform(double limit) { return {Kind::uniform, Fan::none, limit / std::sqrt(3.0)}; }

Initialiser Initialiser::given(std::function<Tensor()> read) {
  Initialiser made{.kind = Kind::given};
  made.read = std::move(read);
  return made;
}

Tensor Initialiser::make(const TensorType& type, std::string_view name, std::uint64_t seed) const {
  if (!is_floating(type.dtype))
    throw UserError(
        fmt::format("the parameter '{}' is {}; parameters and buffers are floating", name, to_string(type)));
  if (kind == Kind::given && !read)
    throw UserError(fmt::format(
        "the parameter '{}' is described by a store that has already read its initial values; give another "
        "initialiser, and copy the values with ParameterStore::write",
        name));
  if (kind == Kind::given) return given_values(*this, type, name);
  if (!std::isfinite(value) || (kind != Kind::constant && value < 0))
    throw UserError(fmt::format(
        "the initialiser of the parameter '{}' has the number {}; a constant must be finite, and a "
        "deviation or a limit finite and not negative",
        name, value));
  const double fan_value = fan == Fan::none ? 1 : std::max(fan_of(type.shape, fan), 1.0);
  const double deviation = fan == Fan::none ? value : std::sqrt(value / fan_value);
  const Draws draws(name, seed);
  Tensor tensor(TensorType{DType::float64, type.shape});
  auto elements = tensor.as<double>();
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const auto index = static_cast<std::int64_t>(i);
    switch (kind) {
      case Kind::constant:
        elements[i] = value;
        break;
      case Kind::uniform:
        elements[i] = (2 * draws.uniform(index, 0) - 1) * deviation * std::sqrt(3.0);
        break;
      case Kind::normal:
        elements[i] = draws.normal(index) * deviation;
        break;
      case Kind::given:
        throw InternalError("given values are returned before");
    }
  }
  if (zero_row) std::ranges::fill(row_of(elements, type, name, *zero_row), 0);
  return tensor.cast(type.dtype);
}

}  // namespace plexaura
