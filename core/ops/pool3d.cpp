#include "core/ops/pool3d.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/loops/loops.h"
#include "core/loops/types.h"
#include "core/ops/elementwise.h"
#include "core/ops/pool_axis.h"

namespace plexaura {

namespace {

void require_volume(Size3d input) {
  if (std::ranges::min(list_of(input)) < 1)
    throw RuleError(fmt::format(
        "the image must have an extent of 1 or more along each axis (here {}): a window over nothing has no "
        "largest element and no mean",
        fmt::join(list_of(input), " x ")));
}

void require_half_padding(const Window3d& window) {
  window.check();
  for (std::size_t i = 0; i < 3; ++i)
    if (2 * list_of(window.padding)[i] > list_of(window.kernel)[i])
      throw RuleError("the padding may be at most half the kernel, so that every window sees the input");
}

Size3d output_of(const Pool3dOptions& options, Size3d input) {
  require_volume(input);
  if (options.output) {
    if (std::ranges::min(list_of(*options.output)) < 1)
      throw RuleError(fmt::format("the output must have an extent of 1 or more along each axis (here {})",
                                  fmt::join(list_of(*options.output), " x ")));
    return *options.output;
  }
  const Window3d& window = options.window;
  require_half_padding(window);
  return options.ceil_mode ? window.outputs_rounded_up(input) : window.outputs(input);
}

TensorType volume(const TensorType& like, Size3d size) {
  return {like.dtype, Shape{like.shape[0], like.shape[1], size.d, size.h, size.w}};
}

TensorType pooled_type(const TensorType& x, const Pool3dOptions& options) {
  require_floating(x);
  require_ncdhw(x);
  return volume(x, output_of(options, spatial_3d(x.shape)));
}

TensorType unpooled_type(const TensorType& y, const Pool3dOptions& options) {
  require_floating(y);
  require_ncdhw(y);
  const Size3d expected = output_of(options, options.input);
  if (spatial_3d(y.shape) != expected)
    throw RuleError(fmt::format("the gradient must have the spatial extents of the output, {}",
                                fmt::join(list_of(expected), " x ")));
  return volume(y, options.input);
}

void require_positions(const TensorType& index, const TensorType& pooled) {
  if (index != TensorType{DType::int64, pooled.shape})
    throw RuleError(fmt::format("the index must be int64 of the pooled shape {}: output 1 of max_pool3d",
                                to_string(pooled.shape)));
}

Pool3dOptions with_input(Pool3dOptions options, Size3d input) {
  options.input = input;
  return options;
}

template <class Options>
Pool3dOptions pool_options(const Options& options) {
  return {{options.kernel, options.stride.value_or(options.kernel), options.padding}, options.ceil_mode};
}

}  // namespace

std::vector<TensorType> MaxPool3d::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 1);
  const TensorType y = pooled_type(inputs[0], options());
  return {y, {DType::int64, y.shape}};
}

std::vector<Node> MaxPool3d::vjp(const VjpRequest& request) const {
  const Pool3dOptions backward = with_input(options(), spatial_3d(request.inputs[0].shape()));
  return {apply(std::make_shared<MaxPool3dGrad>(backward), {request.grad_outputs[0], request.outputs[1]})};
}

std::vector<TensorType> MaxPool3dGrad::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 2);
  require_positions(inputs[1], inputs[0]);
  return {unpooled_type(inputs[0], options())};
}

std::vector<Node> MaxPool3dGrad::vjp(const VjpRequest& request) const {
  return {apply(std::make_shared<MaxPool3dGather>(with_input(options(), 0)),
                {request.grad_outputs[0], request.inputs[1]}),
          Node()};
}

std::vector<TensorType> MaxPool3dGather::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 2);
  const TensorType y = pooled_type(inputs[0], options());
  require_positions(inputs[1], y);
  return {y};
}

std::vector<Node> MaxPool3dGather::vjp(const VjpRequest& request) const {
  const Pool3dOptions backward = with_input(options(), spatial_3d(request.inputs[0].shape()));
  return {apply(std::make_shared<MaxPool3dGrad>(backward), {request.grad_outputs[0], request.inputs[1]}),
          Node()};
}

std::vector<TensorType> AvgPool3d::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 1);
  return {pooled_type(inputs[0], options())};
}

std::vector<Node> AvgPool3d::vjp(const VjpRequest& request) const {
  const Pool3dOptions backward = with_input(options(), spatial_3d(request.inputs[0].shape()));
  return {apply(std::make_shared<AvgPool3dGrad>(backward), {request.grad_outputs[0]})};
}

std::vector<TensorType> AvgPool3dGrad::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 1);
  return {unpooled_type(inputs[0], options())};
}

std::vector<Node> AvgPool3dGrad::vjp(const VjpRequest& request) const {
  return {apply(std::make_shared<AvgPool3d>(with_input(options(), 0)), {request.grad_outputs[0]})};
}

Node max_pool3d(Operand x, MaxPool3dOptions options) {
  return apply(std::make_shared<MaxPool3d>(pool_options(options)), {x});
}

Node avg_pool3d(Operand x, AvgPool3dOptions options) {
  Pool3dOptions pool = pool_options(options);
  pool.count_include_pad = options.count_include_pad;
  return apply(std::make_shared<AvgPool3d>(pool), {x});
}

Node adaptive_max_pool3d(Operand x, Size3d output) {
  return apply(std::make_shared<MaxPool3d>(Pool3dOptions{.output = output}), {x});
}

Node adaptive_avg_pool3d(Operand x, Size3d output) {
  return apply(std::make_shared<AvgPool3d>(Pool3dOptions{.output = output}), {x});
}

namespace {

using namespace portable;

// Calls body(plane, place, element) for each element of a value [N, C, D, H, W]. Several threads share the planes.
template <class Body>
void for_each_voxel(const Shape& shape, std::int64_t cost, const Body& body) {
  const Size3d size = spatial_3d(shape);
  const std::int64_t voxels = size.d * size.h * size.w;
  parallel_for(shape[0] * shape[1], voxels * cost, [&](std::int64_t plane) {
    std::int64_t element = plane * voxels;
    for (std::int64_t d = 0; d < size.d; ++d)
      for (std::int64_t h = 0; h < size.h; ++h)
        for (std::int64_t w = 0; w < size.w; ++w) body(plane, Size3d(d, h, w), element++);
  });
}

// Calls body(position) for each element of the image in the window of a place, row by row. Positions are counted
// within the image.
template <class Body>
void for_each_in_window(const PoolAxes& axes, Size3d place, const Body& body) {
  for (std::int64_t d = axes.d.begin(place.d); d < axes.d.end(place.d); ++d)
    for (std::int64_t h = axes.h.begin(place.h); h < axes.h.end(place.h); ++h)
      for (std::int64_t w = axes.w.begin(place.w); w < axes.w.end(place.w); ++w)
        body((d * axes.h.input + h) * axes.w.input + w);
}

// Calls body(place, number) for each window that contains a position of the image. `number` is the place of the
// window in the output, counted row by row.
template <class Body>
void for_each_window_over(const PoolAxes& axes, Size3d position, const Body& body) {
  for (std::int64_t d = axes.d.first_viewer(position.d); d <= axes.d.last_viewer(position.d); ++d)
    for (std::int64_t h = axes.h.first_viewer(position.h); h <= axes.h.last_viewer(position.h); ++h)
      for (std::int64_t w = axes.w.first_viewer(position.w); w <= axes.w.last_viewer(position.w); ++w)
        body(Size3d(d, h, w), (d * axes.h.output + h) * axes.w.output + w);
}

std::int64_t elements_of(Size3d size) { return size.d * size.h * size.w; }

std::int64_t divisor_of(const PoolAxes& axes, Size3d place, bool count_include_pad) {
  return axes.d.divisor(place.d, count_include_pad) * axes.h.divisor(place.h, count_include_pad) *
         axes.w.divisor(place.w, count_include_pad);
}

template <class T>
void max_pool(const HostCall& call, const PoolAxes& axes, std::int64_t cost) {
  const std::int64_t voxels = elements_of(spatial_3d(call.inputs[0].shape()));
  const T* src = call.inputs[0].as<T>();
  T* dst = call.outputs[0].as<T>();
  auto* index = call.outputs[1].as<std::int64_t>();
  for_each_voxel(call.outputs[0].shape(), cost, [&](auto plane, Size3d place, auto element) {
    const T* image = src + plane * voxels;
    std::int64_t chosen = -1;
    for_each_in_window(axes, place, [&](std::int64_t position) {
      const bool is_first_nan = chosen >= 0 && is_nan(image[position]) && !is_nan(image[chosen]);
      if (chosen < 0 || image[position] > image[chosen] || is_first_nan) chosen = position;
    });
    if (dst != nullptr) dst[element] = image[chosen];
    if (index != nullptr) index[element] = chosen;
  });
}

template <class T>
void max_pool_grad(const HostCall& call, const PoolAxes& axes, std::int64_t cost) {
  const std::int64_t voxels = elements_of(spatial_3d(call.outputs[0].shape()));
  const std::int64_t places = elements_of(spatial_3d(call.inputs[0].shape()));
  const T* diff_dst = call.inputs[0].as<T>();
  const auto* index = call.inputs[1].as<std::int64_t>();
  T* diff_src = call.outputs[0].as<T>();
  for_each_voxel(call.outputs[0].shape(), cost, [&](auto plane, Size3d position, auto element) {
    Compute<T> sum = 0;
    for_each_window_over(axes, position, [&](Size3d, std::int64_t number) {
      const std::int64_t from = plane * places + number;
      if (index[from] == element - plane * voxels) sum += static_cast<Compute<T>>(diff_dst[from]);
    });
    diff_src[element] = T(sum);
  });
}

template <class T>
void max_pool_gather(const HostCall& call) {
  const std::int64_t voxels = elements_of(spatial_3d(call.inputs[0].shape()));
  const T* src = call.inputs[0].as<T>();
  const auto* index = call.inputs[1].as<std::int64_t>();
  T* dst = call.outputs[0].as<T>();
  for_each_voxel(call.outputs[0].shape(), 4, [&](auto plane, Size3d, auto element) {
    dst[element] = src[plane * voxels + index[element]];
  });
}

template <class T>
void avg_pool(const HostCall& call, const PoolAxes& axes, std::int64_t cost, bool count_include_pad) {
  const std::int64_t voxels = elements_of(spatial_3d(call.inputs[0].shape()));
  const T* src = call.inputs[0].as<T>();
  T* dst = call.outputs[0].as<T>();
  for_each_voxel(call.outputs[0].shape(), cost, [&](auto plane, Size3d place, auto element) {
    const T* image = src + plane * voxels;
    double sum = 0;
    for_each_in_window(axes, place,
                       [&](std::int64_t position) { sum += static_cast<double>(image[position]); });
    dst[element] = T(sum / static_cast<double>(divisor_of(axes, place, count_include_pad)));
  });
}

template <class T>
void avg_pool_grad(const HostCall& call, const PoolAxes& axes, std::int64_t cost, bool count_include_pad) {
  const std::int64_t places = elements_of(spatial_3d(call.inputs[0].shape()));
  const T* diff_dst = call.inputs[0].as<T>();
  T* diff_src = call.outputs[0].as<T>();
  for_each_voxel(call.outputs[0].shape(), cost, [&](auto plane, Size3d position, auto element) {
    double sum = 0;
    for_each_window_over(axes, position, [&](Size3d place, std::int64_t number) {
      sum += static_cast<double>(diff_dst[plane * places + number]) /
             static_cast<double>(divisor_of(axes, place, count_include_pad));
    });
    diff_src[element] = T(sum);
  });
}

// The approximate number of elements that a window and its gradient read.
std::int64_t cost_of(const Pool3dOptions& options, Size3d input) {
  if (!options.output) return elements_of(options.window.kernel);
  return elements_of(input) / elements_of(*options.output) + 1;
}

struct Pooling {
  Pooling(const Pool3dOptions& options, const Shape& x, const Shape& y)
      : axes(pool_axes(options, spatial_3d(x), spatial_3d(y))), cost(cost_of(options, spatial_3d(x))) {}

  PoolAxes axes;
  std::int64_t cost;
};

}  // namespace

void MaxPool3d::compute(const HostCall& call) const {
  const Pooling of(options(), call.inputs[0].shape(), call.outputs[0].shape());
  dispatch_floating(call.inputs[0].dtype(),
                    [&]<class T>(std::type_identity<T>) { max_pool<T>(call, of.axes, of.cost); });
}

void MaxPool3dGrad::compute(const HostCall& call) const {
  if (call.outputs[0].data == nullptr) return;
  const Pooling of(options(), call.outputs[0].shape(), call.inputs[0].shape());
  dispatch_floating(call.inputs[0].dtype(),
                    [&]<class T>(std::type_identity<T>) { max_pool_grad<T>(call, of.axes, of.cost); });
}

void MaxPool3dGather::compute(const HostCall& call) const {
  if (call.outputs[0].data == nullptr) return;
  dispatch_floating(call.inputs[0].dtype(),
                    [&]<class T>(std::type_identity<T>) { max_pool_gather<T>(call); });
}

void AvgPool3d::compute(const HostCall& call) const {
  if (call.outputs[0].data == nullptr) return;
  const Pooling of(options(), call.inputs[0].shape(), call.outputs[0].shape());
  dispatch_floating(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    avg_pool<T>(call, of.axes, of.cost, options().count_include_pad);
  });
}

void AvgPool3dGrad::compute(const HostCall& call) const {
  if (call.outputs[0].data == nullptr) return;
  const Pooling of(options(), call.outputs[0].shape(), call.inputs[0].shape());
  dispatch_floating(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    avg_pool_grad<T>(call, of.axes, of.cost, options().count_include_pad);
  });
}

}  // namespace plexaura
