#include "core/ops/random.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <numbers>

#include "core/loops/types.h"
#include "core/ops/draws.h"
#include "core/ops/elementwise.h"
#include "core/tensor/dispatch.h"

namespace plexaura {

namespace {

// Returns the number rounded to the dtype.
double held(double number, DType dtype) { return Tensor::scalar(number).cast(dtype).to_doubles()[0]; }
bool is_finite(double number, DType dtype) { return std::isfinite(held(number, dtype)); }

// Returns the next smaller number of the dtype.
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

namespace {

using namespace portable;

// Sets each element to value(block, lane) of its draw, which is a double.
template <class Value>
void fill(const HostCall& call, const RandomDraws& of, const Value& value) {
  const HostView& result = call.outputs[0];
  if (result.data == nullptr) return;
  const auto* random = call.inputs[0].as<std::int64_t>();
  const philox::Draws draws(random[0], random[1], of.stream);
  const std::int64_t first = first_index(result.shape(), of.batch, random[2]);
  dispatch_floating(result.dtype(), [&]<class T>(std::type_identity<T>) {
    T* dst = result.as<T>();
    parallel_pieces(result.elements(), 60, [&](std::int64_t begin, std::int64_t end) {
      for_each_draw(draws, first, begin, end,
                    [&](std::int64_t i, const philox::Block& block, std::int64_t lane) {
                      dst[i] = T(static_cast<Compute<T>>(value(block, lane)));
                    });
    });
  });
}

void draw_uniform(const HostCall& call, const RandomDraws& of) {
  fill(call, of,
       [low = of.first, width = of.second - of.first, largest = of.largest()](const philox::Block& block,
                                                                              std::int64_t lane) {
         return std::min(low + width * (block.words[lane] * 0x1p-32), largest);
       });
}

// Uses the method of Box and Muller: each pair of words makes two values, the cosine for the even lane and
// the sine for the odd one.
void draw_normal(const HostCall& call, const RandomDraws& of) {
  fill(call, of, [mean = of.first, deviation = of.second](const philox::Block& block, std::int64_t lane) {
    const std::int64_t even = lane & ~std::int64_t{1};
    const double radius = std::sqrt(-2 * std::log((block.words[even] + 1.0) * 0x1p-32));
    const double angle = 2 * std::numbers::pi * (block.words[even + 1] * 0x1p-32);
    return mean + deviation * radius * (lane == even ? std::cos(angle) : std::sin(angle));
  });
}

}  // namespace

void RandomValues::compute(const HostCall& call) const {
  kind_ == Kind::uniform ? draw_uniform(call, options()) : draw_normal(call, options());
}

}  // namespace plexaura
