#include "backends/cpu/onednn/bias_grad.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "backends/cpu/fast/sources.h"

namespace plexaura::onednn {

namespace {

// Up to this many terms, a sum in float is as precise as the gradient of the weights, which is computed
// together with it.
constexpr std::int64_t most_terms_in_float = 1024;

class TwoLaunches final : public Launch {
 public:
  TwoLaunches(std::unique_ptr<Launch> first, std::unique_ptr<Launch> second)
      : first_(std::move(first)), second_(std::move(second)) {}
  void run() override {
    first_->run();
    second_->run();
  }

 private:
  std::unique_ptr<Launch> first_;
  std::unique_ptr<Launch> second_;
};

class WithBiasGrad final : public Kernel {
 public:
  WithBiasGrad(std::shared_ptr<const Kernel> both, std::shared_ptr<const Kernel> bias)
      : both_(std::move(both)), bias_(std::move(bias)) {}

  std::size_t workspace() const override { return std::max(both_->workspace(), bias_->workspace()); }
  std::unique_ptr<Launch> bind(const Binding& at) const override {
    return std::make_unique<TwoLaunches>(
        both_->bind(at), bias_->bind({{at.inputs[1]}, {at.outputs[1]}, at.workspace, at.name}));
  }

 private:
  std::shared_ptr<const Kernel> both_;
  std::shared_ptr<const Kernel> bias_;
};

std::int64_t terms_of(const RegionQuery& query) {
  const Shape& grad_out = query.type(query.region.inputs[1]).shape;
  return grad_out.elements() / grad_out[1];
}

}  // namespace

Candidate with_exact_bias_grad(const RegionQuery& query, Candidate candidate) {
  // A 16-bit result has too few digits to show the loss of a sum in float.
  const bool shows_loss = query.type(query.region.outputs[1]).dtype == DType::float32;
  if (!shows_loss || terms_of(query) <= most_terms_in_float) return candidate;
  const Region bias = single(query.graph, query.region.outputs[1].node);
  const std::vector<Candidate> sums =
      fast::make_reduce_source()->propose({query.graph, bias, {candidate.inputs[1]}, {true}});
  if (sums.empty() || sums[0].inputs[0] != candidate.inputs[1]) return candidate;
  candidate.make = [both = candidate.make, sum = sums[0].make] {
    return std::make_shared<const WithBiasGrad>(both(), sum());
  };
  return candidate;
}

}  // namespace plexaura::onednn
