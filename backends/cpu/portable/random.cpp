#include "core/ops/random.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "backends/cpu/portable/draws.h"
#include "backends/cpu/portable/portable.h"
#include "core/loops/types.h"

namespace plexaura {

namespace {

using namespace portable;

// value(block, lane) of the draws, in double.
template <class Value>
void fill(const HostCall& call, const Value& value) {
  const HostView& result = call.outputs[0];
  if (result.data == nullptr) return;
  const RandomDraws& of = op_cast<RandomValues>(call.op).options();
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

}  // namespace

void portable_uniform(const HostCall& call) {
  const RandomDraws& of = op_cast<RandomValues>(call.op).options();
  fill(call, [low = of.first, width = of.second - of.first, largest = of.largest()](
                 const philox::Block& block, std::int64_t lane) {
    return std::min(low + width * (block.words[lane] * 0x1p-32), largest);
  });
}

// Box and Muller: two words make two values, the cosine for the even lane and the sine for the odd one.
void portable_normal(const HostCall& call) {
  const RandomDraws& of = op_cast<RandomValues>(call.op).options();
  fill(call, [mean = of.first, deviation = of.second](const philox::Block& block, std::int64_t lane) {
    const std::int64_t even = lane & ~std::int64_t{1};
    const double radius = std::sqrt(-2 * std::log((block.words[even] + 1.0) * 0x1p-32));
    const double angle = 2 * std::numbers::pi * (block.words[even + 1] * 0x1p-32);
    return mean + deviation * radius * (lane == even ? std::cos(angle) : std::sin(angle));
  });
}

}  // namespace plexaura
