#pragma once

#include "core/base/export.h"
#include "core/graph/graph.h"
#include "core/graph/op.h"

namespace plexaura {

struct RandomOptions {
  bool batch = true;  // axis 0 is the batch; false: all ranks draw alike

  static void fields(auto& self, auto& visitor) { visitor("batch", self.batch); }
};

// Random values of a floating type, in both modes. What is drawn is a function of the run's seed, the step, this op's
// stream and the element's place in the global batch, so that any number of ranks and micro-batches draws what one
// rank with the whole batch draws. Training draws anew in each step; validation draws the same for a sample each time,
// and so does a Predictor. A VM that is given no StepBlock draws anew in each run: see VM::run.

// Evenly from `low` to `high`: low + (high - low) u with u of 32 bits, 0 <= u < 1, rounded to the dtype, or where that
// gives `high` the number below it. So `high` is never drawn, unless no number of the dtype lies between. Both finite
// in the dtype, their distance in float64; low not above high.
PLEXAURA_API Node uniform(Graph& graph, const TensorType& type, double low = 0, double high = 1,
                          RandomOptions options = {},
                          std::source_location where = std::source_location::current());

// From the normal distribution; both finite in the dtype, deviation not negative.
// None lies further out than 6.7 deviations.
PLEXAURA_API Node normal(Graph& graph, const TensorType& type, double mean = 0, double deviation = 1,
                         RandomOptions options = {},
                         std::source_location where = std::source_location::current());

struct RandomDraws : RandomOptions {
  TensorType type = {};
  double first = 0;   // the lower bound, or the mean
  double second = 1;  // the upper bound, or the deviation
  std::int64_t stream = 0;

  static void fields(auto& self, auto& visitor) {
    visitor("dtype", self.type.dtype);
    visitor("shape", self.type.shape);
    visitor("first", self.first);
    visitor("second", self.second);
    RandomOptions::fields(self, visitor);
    visitor("stream", self.stream);
  }

  // The largest number of the dtype that uniform() draws.
  PLEXAURA_API double largest() const;
};

// The class behind both. Input: StepScalar::random.
class PLEXAURA_API RandomValues final : public OpOf<RandomValues, RandomDraws> {
 public:
  enum class Kind { uniform, normal };
  RandomValues(Kind kind, RandomDraws options) : OpOf(std::move(options)), kind_(kind) {}

  std::string_view name() const override { return kind_ == Kind::uniform ? "uniform" : "normal"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest&) const override { return {Node()}; }
  void compute(const HostCall& call) const;
  OpTraits traits() const override { return {.random = true}; }

 private:
  Kind kind_;
};

}  // namespace plexaura
