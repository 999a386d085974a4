#include "backends/cuda/offers/library_source.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

#include "backends/cuda/kernels/strides.h"
#include "backends/cuda/offers/channels_last.h"
#include "backends/cuda/offers/costs.h"
#include "backends/cuda/offers/library_kernel.h"
#include "backends/regions/matmul_regions.h"
#include "core/ops/matmul.h"

namespace plexaura::cuda {

namespace {

using vendor::Convolution;
using vendor::MatrixProduct;

std::string text_of(const MatrixProduct& of) {
  return fmt::format("matmul {} {}x{}x{} {}{} {} {}{} {}", name_of(of.dtype), of.rows, of.columns, of.inner,
                     of.transpose_a, of.transpose_b, of.products, of.one_a, of.one_b, of.bias);
}

std::string text_of(const Convolution& of) {
  const Conv2dOptions& options = of.options;
  return fmt::format("conv{} {} {} {} {} {} {}x{} {}x{} {}x{}", of.channels_last ? " channels last" : "",
                     static_cast<int>(of.kind), name_of(of.dtype), to_string(of.x), to_string(of.weights),
                     to_string(of.y), options.stride.h, options.stride.w, options.padding.h,
                     options.padding.w, options.dilation.h, options.dilation.w);
}

// The distance from one matrix of an operand to the next. `one`: all products read the same matrix.
// `consecutive`: the matrices lie one after another.
enum class Sequence : std::uint8_t { one, consecutive, other };

Sequence sequence_of(const Shape& operand, const Shape& result) {
  Strides<1> strides;
  for (std::int64_t axis = 0; axis + 2 < result.rank(); ++axis)
    strides.add_axis(result[axis], {broadcast_stride(operand, result, axis)});
  if (strides.rank == 0) return Sequence::one;
  if (strides.rank > 1) return Sequence::other;
  if (strides.strides[0][0] == 0) return Sequence::one;
  const std::int64_t matrix = operand[operand.rank() - 2] * operand[operand.rank() - 1];
  return strides.strides[0][0] == matrix ? Sequence::consecutive : Sequence::other;
}

// Returns the problem of a product. Returns nothing if the matrices of an operand are neither consecutive nor
// all the same, and if there are more matrices than the libraries can count.
std::optional<MatrixProduct> matrix_product(const RegionQuery& query) {
  const MatMulOptions& options = op_cast<MatMul>(query.op()).options();
  const auto& [a, b, result] = matmul_shapes(query);
  if (result.rank() > most_axes) return std::nullopt;
  MatrixProduct product{.dtype = query.type(query.region.outputs[0]).dtype,
                        .rows = result[result.rank() - 2],
                        .columns = result[result.rank() - 1],
                        .inner = a[a.rank() - (options.transpose_a ? 2 : 1)],
                        .transpose_a = options.transpose_a,
                        .transpose_b = options.transpose_b,
                        .bias = query.region.kind == matmul_with_bias};
  product.products = result.elements() / (product.rows * product.columns);
  const Sequence of_a = sequence_of(a, result);
  const Sequence of_b = sequence_of(b, result);
  if (of_a == Sequence::other || of_b == Sequence::other) return std::nullopt;
  if (product.products > std::numeric_limits<std::int32_t>::max()) return std::nullopt;
  product.one_a = of_a == Sequence::one;
  product.one_b = of_b == Sequence::one;
  return product;
}

template <class Of>
const Conv2dOptions& options_of(const RegionQuery& query) {
  return op_cast<Of>(query.op()).options();
}

std::optional<Convolution> convolution(const RegionQuery& query) {
  const auto input = [&](std::size_t i) -> const Shape& { return query.type(query.region.inputs[i]).shape; };
  const TensorType& result = query.type(query.region.outputs[0]);
  const std::string& kind = query.region.kind;
  if (kind == "conv2d")
    return Convolution{Convolution::Kind::forward, result.dtype, input(0), input(1), result.shape,
                       options_of<Conv2dOp>(query)};
  if (kind == "conv2d_input_grad")
    return Convolution{Convolution::Kind::input_grad,     result.dtype, result.shape, input(0), input(1),
                       options_of<Conv2dInputGrad>(query)};
  if (kind == "conv2d_weight_grad")
    return Convolution{Convolution::Kind::weight_grad,     result.dtype, input(0), result.shape, input(1),
                       options_of<Conv2dWeightGrad>(query)};
  return std::nullopt;
}

bool is_empty(const RegionQuery& query) {
  const auto empty = [&](Value value) { return query.type(value).shape.elements() == 0; };
  return std::ranges::any_of(query.region.inputs, empty) || std::ranges::any_of(query.region.outputs, empty);
}

std::optional<Bias> bias_of(const RegionQuery& query, bool channels_last) {
  const Region& region = query.region;
  if (region.kind != "conv2d" || region.inputs.size() < 3) return std::nullopt;
  return Bias{query.graph.record(region.nodes[0]).op, 2, query.type(region.inputs[2]),
              query.type(region.outputs[0]), channels_last};
}

struct Layouts {
  std::vector<Layout> inputs;
  Layout output;
  bool channels_last;
};

Layouts layouts_of(const RegionQuery& query, bool channels_last) {
  const auto layout = [&](Value value) {
    const TensorType& type = query.type(value);
    return channels_last ? layout_with_channels_last(type) : Layout::row_major(type.shape.rank());
  };
  Layouts layouts{{}, layout(query.region.outputs[0]), channels_last};
  for (const Value input : query.region.inputs) layouts.inputs.push_back(layout(input));
  return layouts;
}

// Returns the layouts with padded images and weights.
Layouts padded_layouts_of(const RegionQuery& query, Convolution::Kind kind) {
  Layouts layouts = layouts_of(query, true);
  layouts.inputs[0] = padded();
  (kind == Convolution::Kind::forward ? layouts.inputs[1] : layouts.output) = padded();
  return layouts;
}

std::vector<Candidate> candidates_of(const std::shared_ptr<Device>& device, const RegionQuery& query,
                                     const vendor::Plans& plans, const Layouts& layouts, double seconds) {
  std::vector<Candidate> candidates;
  for (const auto& plan : plans) {
    Candidate& candidate = candidates.emplace_back();
    candidate.implementation = plan->name();
    candidate.inputs = layouts.inputs;
    candidate.outputs = {layouts.output};
    candidate.seconds = candidates.size() > 1 ? std::numeric_limits<double>::infinity() : seconds;
    candidate.make = [device, plan, bias = bias_of(query, layouts.channels_last)] {
      return std::make_shared<const LibraryKernel>(device, plan, bias);
    };
  }
  return candidates;
}

bool is_16_bit(DType dtype) { return dtype == DType::bfloat16 || dtype == DType::float16; }

}  // namespace

LibrarySource::LibrarySource(std::shared_ptr<Device> device, const vendor::Options& options)
    : tf32_(options.tf32), device_(std::move(device)), libraries_(vendor::open_libraries(options)) {}

template <class Problem>
vendor::Plans LibrarySource::known_plans(const Problem& problem) {
  std::string text = text_of(problem);
  if (const auto known = known_.find(text); known != known_.end()) return known->second;
  return known_.emplace(std::move(text), libraries_->plans(problem)).first->second;
}

double LibrarySource::seconds_of(const RegionQuery& query, double copied_bytes) const {
  return seconds_of_launch + (bytes_of(query) + copied_bytes) / device_->info.bytes_in_a_second +
         operations_of(query) / operations_of_libraries;
}

std::vector<Candidate> LibrarySource::of_matrices(const RegionQuery& query) {
  const auto problem = matrix_product(query);
  if (!problem) return {};
  return candidates_of(device_, query, known_plans(*problem), layouts_of(query, false), seconds_of(query, 0));
}

// Returns candidates for images. Without tensor cores, the plans use row-major images. Tensor cores need
// channels last, so their plans for row-major images read and write a copy of each value, and are requested
// only if there are no others. In 16 bits tensor cores also need eight channels. If images have fewer channels,
// a plan makes a padded copy of them itself, or it takes images that are already stored padded().
std::vector<Candidate> LibrarySource::of_images(const RegionQuery& query) {
  const auto row_major = convolution(query);
  if (!row_major) return {};
  auto problem = row_major;
  const bool tensor_cores = is_16_bit(problem->dtype) || (problem->dtype == DType::float32 && tf32_);
  std::vector<Candidate> candidates;
  const auto add = [&](const Layouts& layouts, double more_bytes) {
    std::ranges::move(
        candidates_of(device_, query, known_plans(*problem), layouts, seconds_of(query, more_bytes)),
        std::back_inserter(candidates));
  };
  if (!tensor_cores) {
    add(layouts_of(query, false), 0);
    return candidates;
  }
  problem->channels_last = true;
  const TensorType x{problem->dtype, problem->x};
  const bool pads =
      has_few_channels(x) && problem->options.groups == 1 && problem->kind != Convolution::Kind::input_grad;
  const auto bytes_padded = pads ? static_cast<double>(padded().bytes(x)) : 0.0;
  add(layouts_of(query, true), 2 * bytes_padded);
  if (pads) {
    problem->x = with_padding(problem->x);
    problem->weights = with_padding(problem->weights);
    add(padded_layouts_of(query, problem->kind), bytes_padded - static_cast<double>(x.bytes()));
  }
  if (!candidates.empty()) return candidates;
  problem = row_major;
  add(layouts_of(query, false), 2 * bytes_of(query));
  return candidates;
}

std::vector<Candidate> LibrarySource::propose(const RegionQuery& query) {
  runtime::use_device_in_this_thread();
  if (is_empty(query)) return {};
  return is_matmul(query) ? of_matrices(query) : of_images(query);
}

}  // namespace plexaura::cuda
