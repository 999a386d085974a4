// The functions of backends/cuda/vendor/vendor.h on the simulated device. The portable kernels compute when
// the stream reaches the call. The needs of a library are checked: operands and scratch memory must be
// allocated and aligned. Scratch memory is overwritten, so that a value which shares it is lost. Products of
// 1001 columns cannot be enqueued.

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

#include "backends/cuda/kernels/block.h"
#include "backends/cuda/vendor/vendor.h"
#include "core/base/error.h"
#include "core/graph/graph.h"
#include "core/ops/binary.h"
#include "core/ops/matmul.h"
#include "core/tensor/layout.h"
#include "tests/support/simulated_cuda/simulation.h"

namespace plexaura::cuda::vendor {

namespace {

constexpr std::int64_t columns_of_failure = 1001;
const Layout row_major = Layout::row_major(4);
const Layout channels_last({0, 2, 3, 1});

struct Work {
  std::shared_ptr<const Op> op;
  std::vector<TensorType> inputs;
  TensorType output;
  std::shared_ptr<const Op> add = {};  // adds the last input to the output
  bool channels_last = false;
};

std::byte* place(Address address, std::size_t bytes, std::size_t alignment, bool writes) {
  if (reinterpret_cast<std::uintptr_t>(address) % alignment != 0)
    throw InternalError(fmt::format("a library was given an address that is no multiple of {}", alignment));
  std::byte* const place = place_of(address, bytes);
  simulation::Device::get().note_use(place, bytes, writes);
  return place;
}

// Returns the number of channels in use of images or weights that are channels last. Other channels after
// these are padding.
std::int64_t channels_in_use(const HostView& images) {
  const std::int64_t channels = images.type->shape[1];
  const auto size = static_cast<std::int64_t>(size_of(images.type->dtype));
  std::int64_t used = 0;
  for (std::int64_t i = 0; i < images.type->bytes(); ++i)
    if (images.data[i] != std::byte{0}) used = std::max(used, i / size % channels + 1);
  return used;
}

HostView view(Address address, const TensorType& type, bool writes) {
  return {place(address, static_cast<std::size_t>(type.bytes()), operand_alignment, writes), &type};
}

class SimulatedPlan final : public Plan {
 public:
  SimulatedPlan(std::string name, Work work, std::size_t workspace)
      : name_(std::move(name)), work_(std::move(work)), workspace_(workspace) {}

  const std::string& name() const override { return name_; }
  std::size_t workspace() const override { return workspace_; }

  std::function<void(runtime::Stream* stream)> bind(std::span<const Address> inputs, Address output,
                                                    Address workspace) const override {
    if (inputs.size() != work_.inputs.size())
      throw InternalError(
          fmt::format("a library was given {} inputs instead of {}", inputs.size(), work_.inputs.size()));
    return [this, inputs = std::vector(inputs.begin(), inputs.end()), output,
            workspace](runtime::Stream* stream) {
      if (const Shape& result = work_.output.shape; result[result.rank() - 1] == columns_of_failure)
        throw DeviceError("the simulated library fails");
      const auto lock = simulation::Device::get().lock();
      simulation::Device::get().begin_launch(name_);
      simulation::Device::get().enqueue(stream, name_, [=, this] { run(inputs, output, workspace); });
    };
  }

 private:
  void run(const std::vector<Address>& inputs, Address output, Address workspace) const {
    if (workspace_ > 0)
      std::memset(place(workspace, workspace_, workspace_alignment, true), 0xff, workspace_);
    std::vector<HostView> from;
    for (std::size_t i = 0; i < inputs.size(); ++i) from.push_back(view(inputs[i], work_.inputs[i], false));
    const HostView to = view(output, work_.output, true);
    if (work_.channels_last)
      run_row_major(from, to);
    else
      compute(from, to);
  }

  // Leaves out channels of zeros after the others. They are padding, and would change the order of sums.
  void run_row_major(std::vector<HostView> from, const HostView& to) const {
    std::vector<std::vector<std::byte>> copies;
    std::vector<TensorType> types = work_.inputs;
    if (work_.op->name() == "conv2d")
      for (TensorType& type : types) {
        const std::int64_t used = std::max(channels_in_use(from[0]), channels_in_use(from[1]));
        type.shape = {type.shape[0], std::max<std::int64_t>(used, 1), type.shape[2], type.shape[3]};
      }
    for (std::size_t i = 0; i < from.size(); ++i) {
      const Layout lies({0, 2, 3, 1}, {{1, from[i].type->shape[1]}});
      auto& copy = copies.emplace_back(static_cast<std::size_t>(types[i].bytes()));
      reorder(from[i].data, lies, copy.data(), row_major, types[i]);
      from[i] = {copy.data(), &types[i]};
    }
    std::vector<std::byte> result(static_cast<std::size_t>(to.type->bytes()));
    compute(from, {result.data(), to.type});
    reorder(result.data(), row_major, to.data, channels_last, *to.type);
  }

  void compute(const std::vector<HostView>& from, const HostView& to) const {
    const std::size_t factors = work_.add ? from.size() - 1 : from.size();
    run_reference(*work_.op, {std::span(from).first(factors), {&to, 1}});
    if (work_.add) run_reference(*work_.add, {std::vector{to, from.back()}, {&to, 1}});
  }

  static void run_reference(const Op& op, const HostCall& call) { op.reference()(op, call); }

  std::string name_;
  Work work_;
  std::size_t workspace_;
};

// Returns two plans: one needs scratch memory, the other does not.
Plans plans_for(const Work& work) {
  constexpr std::size_t workspace = 1000;
  return {std::make_shared<SimulatedPlan>("simulated library 0", work, workspace),
          std::make_shared<SimulatedPlan>("simulated library 1", work, 0)};
}

TensorType matrices(const MatrixProduct& problem, bool one, std::int64_t rows, std::int64_t columns,
                    bool transpose) {
  return {problem.dtype,
          {one ? 1 : problem.products, transpose ? columns : rows, transpose ? rows : columns}};
}

std::shared_ptr<const Op> add_of(const TensorType& a, const TensorType& b) {
  Graph graph;
  return graph.record(add(graph.input("a", a), graph.input("b", b)).id()).op;
}

class SimulatedLibraries final : public Libraries {
 public:
  explicit SimulatedLibraries(const Options& options) : tf32_(options.tf32) {}

  std::string versions() const override {
    return tf32_ ? "simulated libraries with TF32" : "simulated libraries";
  }

  Plans plans(const MatrixProduct& of) override {
    Work work{std::make_shared<MatMul>(MatMulOptions{of.transpose_a, of.transpose_b}),
              {matrices(of, of.one_a, of.rows, of.inner, of.transpose_a),
               matrices(of, of.one_b, of.inner, of.columns, of.transpose_b)},
              matrices(of, false, of.rows, of.columns, false)};
    if (of.bias) {
      work.inputs.push_back({of.dtype, {of.columns}});
      work.add = add_of(work.output, work.inputs[2]);
    }
    return plans_for(work);
  }

  // Refuses groups, and dilated windows on images that are channels last.
  Plans plans(const Convolution& of) override {
    if (of.options.groups > 1) return {};
    if (of.channels_last && of.options.dilation.h > 1) return {};
    Work work = work_of(of);
    work.channels_last = of.channels_last;
    return plans_for(work);
  }

 private:
  static Work work_of(const Convolution& of) {
    const TensorType x{of.dtype, of.x};
    const TensorType weights{of.dtype, of.weights};
    const TensorType y{of.dtype, of.y};
    switch (of.kind) {
      case Convolution::Kind::input_grad:
        return {std::make_shared<Conv2dInputGrad>(Conv2dInputGradOptions{of.options, {of.x[2], of.x[3]}}),
                {weights, y},
                x};
      case Convolution::Kind::weight_grad:
        return {std::make_shared<Conv2dWeightGrad>(
                    Conv2dWeightGradOptions{of.options, {of.weights[2], of.weights[3]}}),
                {x, y},
                weights};
      default:
        return {std::make_shared<Conv2dOp>(of.options), {x, weights}, y};
    }
  }

  bool tf32_;
};

}  // namespace

std::unique_ptr<Libraries> open_libraries(const Options& options) {
  return std::make_unique<SimulatedLibraries>(options);
}

}  // namespace plexaura::cuda::vendor
