#pragma once

#include "core/base/export.h"
#include "core/graph/graph.h"
#include "core/graph/op.h"

namespace plexaura {

struct RandomOptions {
  bool batch = true;  // true if axis 0 is the batch; false: all ranks draw the same numbers

  static void fields(auto& self, auto& visitor) { visitor("batch", self.batch); }
};

// Random values of a floating type, for training and for inference. They depend only on the run's seed, the
// step, this op's stream and the element's place in the global batch. So any number of ranks and
// micro-batches draws the numbers that one rank with the whole batch draws. Training draws new values in each
// step. Validation draws the same values for a sample each time, and so does a Predictor. A VM without a
// StepBlock draws new values in each run: see VM::run.

// Uniformly distributed values: low + (high - low) u, where u has 32 random bits and 0 <= u < 1, rounded to
// the dtype. A result that is rounded to `high` is replaced by the next smaller number, so `high` is never
// drawn unless `low` equals it in the dtype. Both bounds must be finite in the dtype, and their difference in
// float64; `low` must not be above `high`.
PLEXAURA_API Node uniform(Graph& graph, const TensorType& type, double low = 0, double high = 1,
                          RandomOptions options = {},
                          std::source_location where = std::source_location::current());

// Normally distributed values. Mean and deviation must be finite in the dtype, and the deviation not
// negative. No value is further than 6.7 deviations from the mean.
PLEXAURA_API Node normal(Graph& graph, const TensorType& type, double mean = 0, double deviation = 1,
                         RandomOptions options = {},
                         std::source_location where = std::source_location::current());

struct RandomDraws : RandomOptions {
  TensorType type = {};
  double first = 0;   // lower bound of uniform(), or mean of normal()
  double second = 1;  // upper bound of uniform(), or deviation of normal()
  std::int64_t stream = 0;

  static void fields(auto& self, auto& visitor) {
    visitor("dtype", self.type.dtype);
    visitor("shape", self.type.shape);
    visitor("first", self.first);
    visitor("second", self.second);
    RandomOptions::fields(self, visitor);
    visitor("stream", self.stream);
  }

  // Returns the largest number of the dtype that uniform() draws.
  PLEXAURA_API double largest() const;
};

// The op of uniform() and normal(). Input: StepScalar::random.
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
