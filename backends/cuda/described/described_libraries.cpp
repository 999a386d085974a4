// Functions that replace NVIDIA's libraries for a GPU that is not present, and count the calls to them.
// cuBLASLt does not work without a GPU, so this assumes that each product has one plan, which needs no
// workspace.

#include <algorithm>
#include <string>

#include "backends/cuda/described/convolution_plans.h"
#include "backends/cuda/described/described_runtime.h"
#include "backends/cuda/vendor/vendor.h"
#include "core/base/error.h"

namespace plexaura::cuda::vendor {

namespace {

using described::PlanOutline;

class DescribedPlan final : public Plan {
 public:
  DescribedPlan(PlanOutline outline, EnqueuedCall call)
      : outline_(std::move(outline)), call_(std::move(call)) {}

  const std::string& name() const override { return outline_.name; }
  std::size_t workspace() const override { return outline_.workspace; }

  std::function<void(runtime::Stream* stream)> bind(std::span<const Address>, Address,
                                                    Address) const override {
    return [this](runtime::Stream* stream) {
      if (!described::is_counting())
        throw UserError(
            "a product of constants cannot be computed for a GPU that is only described; make it a constant");
      described::count(call_, stream);
    };
  }

 private:
  PlanOutline outline_;
  EnqueuedCall call_;
};

EnqueuedCall call_of(std::string what, double elements, double operations, DType dtype,
                     const Options& options) {
  EnqueuedCall call{.kind = EnqueuedCall::Kind::library, .what = std::move(what)};
  call.bytes = elements * static_cast<double>(size_of(dtype));
  call.operations = operations;
  const double rate = operations_in_a_second(described::described_gpu(), dtype, options.tf32);
  call.seconds = std::max(described::seconds_of(call.bytes), operations / rate);
  return call;
}

std::string what_of(const Convolution& problem) {
  switch (problem.kind) {
    case Convolution::Kind::input_grad:
      return "conv2d_input_grad";
    case Convolution::Kind::weight_grad:
      return "conv2d_weight_grad";
    default:
      return "conv2d";
  }
}

class DescribedLibraries final : public Libraries {
 public:
  explicit DescribedLibraries(const Options& options)
      : options_(options), convolutions_(options, described::described_gpu()) {}

  std::string versions() const override { return convolutions_.source() + ", products assumed"; }

  Plans plans(const MatrixProduct& of) override {
    const auto count = [](std::int64_t a, std::int64_t b, std::int64_t products) {
      return static_cast<double>(a) * static_cast<double>(b) * static_cast<double>(products);
    };
    const double elements = count(of.rows, of.inner, of.one_a ? 1 : of.products) +
                            count(of.inner, of.columns, of.one_b ? 1 : of.products) +
                            count(of.rows, of.columns, of.products);
    const double operations = 2 * count(of.rows, of.columns, of.products) * static_cast<double>(of.inner);
    return {std::make_shared<DescribedPlan>(
        PlanOutline{.name = "assumed cublaslt"},
        call_of(of.bias ? "matmul+add" : "matmul", elements, operations, of.dtype, options_))};
  }

  Plans plans(const Convolution& of) override {
    const auto elements = static_cast<double>(of.x.elements() + of.weights.elements() + of.y.elements());
    const double operations = 2 * static_cast<double>(of.y.elements()) *
                              static_cast<double>(of.weights.elements()) / static_cast<double>(of.weights[0]);
    Plans plans;
    for (PlanOutline& outline : convolutions_.plans(of))
      plans.push_back(std::make_shared<DescribedPlan>(
          std::move(outline), call_of(what_of(of), elements, operations, of.dtype, options_)));
    return plans;
  }

 private:
  Options options_;
  described::ConvolutionPlans convolutions_;
};

}  // namespace

std::unique_ptr<Libraries> open_libraries(const Options& options) {
  return std::make_unique<DescribedLibraries>(options);
}

}  // namespace plexaura::cuda::vendor
