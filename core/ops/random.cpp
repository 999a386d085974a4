#include "core/ops/random.h"

#include <cmath>
#include <fmt/format.h>
#include <limits>

#include "core/ops/elementwise.h"
#include "core/tensor/dispatch.h"

namespace plexaura {

namespace {

// Once it is rounded to the dtype.
double held(double number, DType dtype) { return Tensor::scalar(number).cast(dtype).to_doubles()[0]; }
bool is_finite(double number, DType dtype) { return std::isfinite(held(number, dtype)); }

// The next smaller number.
double below(double number, DType dtype) {
  return dispatch(dtype, [&]<class T>(std::type_identity<T>) -> double {
    if constexpr (std::is_floating_point_v<T>) {
      return std::nextafter(static_cast<T>(number), -std::numeric_limits<T>::infinity());
    } else if constexpr (std::is_integral_v<T>) {
      throw InternalError("below() of a dtype that is not floating");
    } else {
      T result(static_cast<float>(number));
      const bool is_zero = number == 0;
      result.bits = static_cast<std::uint16_t>(is_zero ? 0x8001 : result.bits + (number > 0 ? -1 : 1));
      return static_cast<double>(result);
    }
  });
}

Node draw(Graph& graph, RandomValues::Kind kind, RandomDraws draws, std::source_location where) {
  const Node random = graph.step_scalar(StepScalar::random, DType::int64, where);
  draws.stream = graph.next_stream();
  return apply(std::make_shared<RandomValues>(kind, std::move(draws)), {Operand(random, where)});
}

}  // namespace

double RandomDraws::largest() const {
  const double high = held(second, type.dtype);
  return held(first, type.dtype) < high ? below(high, type.dtype) : high;
}

std::vector<TensorType> RandomValues::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 1);
  const RandomDraws& of = options();
  require_floating(of.type);
  if (inputs[0] != TensorType{DType::int64, Shape{3}})
    throw RuleError("the operand must be the step scalar 'random'");
  const bool finite = is_finite(of.first, of.type.dtype) && is_finite(of.second, of.type.dtype);
  const bool narrow = std::isfinite(of.second - of.first);
  if (kind_ == Kind::uniform && !(finite && narrow && of.first <= of.second))
    throw RuleError(fmt::format(
        "the bounds must be finite in {} and their distance in float64, and the lower one ({}) not "
        "above the upper one ({})",
        name_of(of.type.dtype), of.first, of.second));
  if (kind_ == Kind::normal && !(finite && of.second >= 0))
    throw RuleError(fmt::format(
        "the mean ({}) and the deviation ({}) must be finite in {}, and the deviation not negative", of.first,
        of.second, name_of(of.type.dtype)));
  return {of.type};
}

Node uniform(Graph& graph, const TensorType& type, double low, double high, RandomOptions options,
             std::source_location where) {
  return draw(graph, RandomValues::Kind::uniform, {options, type, low, high, 0}, where);
}

Node normal(Graph& graph, const TensorType& type, double mean, double deviation, RandomOptions options,
            std::source_location where) {
  return draw(graph, RandomValues::Kind::normal, {options, type, mean, deviation, 0}, where);
}

}  // namespace plexaura
