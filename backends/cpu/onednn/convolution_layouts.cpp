#include "backends/cpu/onednn/convolution_layouts.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <vector>

#include "backends/cpu/fast/channel_view.h"
#include "core/host/costs.h"

namespace plexaura::onednn {

namespace {

constexpr std::int64_t lanes = 16;  // number of float32 values in the widest registers
constexpr std::int64_t few_channels = 16;

std::int64_t rounded_up(std::int64_t count, std::int64_t multiple) {
  return (count + multiple - 1) / multiple * multiple;
}

// Returns the shape with other extents of the first two axes.
Shape with_first(const Shape& shape, std::int64_t first, std::int64_t second) {
  std::vector<std::int64_t> extents = shape.extents();
  extents[0] = first;
  extents[1] = second;
  return Shape(std::move(extents));
}

// Returns the number of elements behind the first two axes: the pixels of one channel, or the elements of a window.
std::int64_t places_of(const Shape& shape) {
  const std::vector<std::int64_t>& extents = shape.extents();
  return std::accumulate(extents.begin() + 2, extents.end(), std::int64_t{1}, std::multiplies{});
}

template <class Options>
ConvolutionWindow made_from(const Options& options) {
  const auto dims = [](const auto& size) {
    const auto list = list_of(size);
    return memory::dims(list.begin(), list.end());
  };
  return {dims(options.stride), dims(options.dilation), dims(options.padding),
          dims(options.padding_end.value_or(options.padding)), options.groups};
}

std::int64_t block_of(ConvolutionLayouts layouts) {
  if (layouts == ConvolutionLayouts::blocks_of_16) return 16;
  return layouts == ConvolutionLayouts::blocks_of_8 ? 8 : 1;
}

ConvolutionShapes in_blocks(const ConvolutionShapes& shapes, std::int64_t block) {
  const std::int64_t in = rounded_up(shapes.src[1], block);
  const std::int64_t out = rounded_up(shapes.dst[1], block);
  return {with_first(shapes.src, shapes.src[0], in), with_first(shapes.weights, out, in),
          with_first(shapes.dst, shapes.dst[0], out), shapes.dtype};
}

memory::dims dims_in_groups(const Shape& weights, std::int64_t groups) {
  memory::dims dims = dims_of(weights);
  dims[0] /= groups;
  dims.insert(dims.begin(), groups);
  return dims;
}

memory::desc weights_desc(const Shape& weights, std::int64_t groups, DType dtype) {
  return any_layout(groups == 1 ? dims_of(weights) : dims_in_groups(weights, groups), dtype);
}

ConvolutionDescs with_layouts(const ConvolutionShapes& shapes, const ConvolutionWindow& window,
                              const std::optional<Layout>& src, const std::optional<Layout>& dst) {
  const auto desc = [&](const Shape& shape, const std::optional<Layout>& layout) {
    return layout ? *desc_of(*layout, {shapes.dtype, shape}) : any_layout(dims_of(shape), shapes.dtype);
  };
  // The library counts the elements that dilation leaves out: 0 for neighbours.
  memory::dims left_out = window.dilation;
  for (std::int64_t& distance : left_out) --distance;
  return {desc(shapes.src, src), weights_desc(shapes.weights, window.groups, shapes.dtype),
          std::nullopt,          desc(shapes.dst, dst),
          window.stride,         left_out,
          window.padding,        window.padding_end};
}

// Describes a convolution for Winograd kernels. oneDNN 2 has such kernels for windows of 3x3; oneDNN 3 has
// none.
std::optional<ConvolutionDescs> describe_winograd(const ConvolutionShapes& shapes,
                                                  const ConvolutionWindow& window) {
  const bool fits = shapes.weights.rank() == 4 && shapes.weights[2] == 3 && shapes.weights[3] == 3 &&
                    window.is_dense() && window.groups == 1;
  if (!fits) return std::nullopt;
  ConvolutionDescs descs = with_layouts(shapes, window, std::nullopt, std::nullopt);
  descs.algorithm = dnnl::algorithm::convolution_winograd;
  return descs;
}

Layout channels_last(std::int64_t rank) {
  std::vector<std::int64_t> order = Layout::row_major(rank).order();
  std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  return Layout(std::move(order));
}

std::optional<ConvolutionDescs> describe_images(ConvolutionLayouts layouts, const ConvolutionShapes& shapes,
                                                const ConvolutionWindow& window) {
  const std::int64_t block = block_of(layouts);
  const Layout rows = Layout::row_major(shapes.src.rank());
  const Layout blocked(rows.order(), {{1, block}});
  const Layout last = channels_last(shapes.src.rank());
  switch (layouts) {
    case ConvolutionLayouts::library:
      return with_layouts(shapes, window, std::nullopt, std::nullopt);
    case ConvolutionLayouts::library_behind_row_major:
      if (shapes.src[1] >= few_channels) return std::nullopt;
      return with_layouts(shapes, window, rows, std::nullopt);
    case ConvolutionLayouts::blocks_of_16:
    case ConvolutionLayouts::blocks_of_8:
      if (window.groups > 1) return std::nullopt;
      return with_layouts(in_blocks(shapes, block), window, blocked, blocked);
    case ConvolutionLayouts::channels_last:
      return with_layouts(shapes, window, last, last);
    case ConvolutionLayouts::row_major:
      return with_layouts(shapes, window, rows, rows);
    case ConvolutionLayouts::library_for_winograd:
      return describe_winograd(shapes, window);
  }
  return std::nullopt;
}

}  // namespace

bool ConvolutionWindow::is_dense() const {
  const auto is_one = [](std::int64_t step) { return step == 1; };
  return std::ranges::all_of(stride, is_one) && std::ranges::all_of(dilation, is_one);
}

ConvolutionWindow window_of(const Conv2dOptions& options) { return made_from(options); }
ConvolutionWindow window_of(const Conv3dOptions& options) { return made_from(options); }

std::optional<ConvolutionDescs> describe_operands(ConvolutionLayouts layouts, const ConvolutionShapes& shapes,
                                                  const ConvolutionWindow& window, bool has_bias) {
  auto descs = describe_images(layouts, shapes, window);
  if (descs && has_bias)
    descs->bias = row_major({rounded_up(shapes.dst[1], block_of(layouts))}, shapes.dtype);
  return descs;
}

memory::desc row_major_groups(const TensorType& weights, std::int64_t groups) {
  return row_major(dims_in_groups(weights.shape, groups), weights.dtype);
}

double seconds_of_convolution(const ConvolutionShapes& shapes, std::int64_t groups, const Layout& src,
                              const Layout& dst, VectorAxis vector, const std::string& implementation) {
  const std::int64_t pixels = shapes.dst.elements() / shapes.dst[1];
  const double places = static_cast<double>(pixels * places_of(shapes.weights));
  std::int64_t in = src.padded(shapes.src)[1] / groups;
  std::int64_t out = dst.padded(shapes.dst)[1] / groups;
  if (implementation.find("gemm") != std::string::npos)
    return places * static_cast<double>(groups * in) *
           (1 / costs::copied_elements + 2 * static_cast<double>(out) / costs::operations_on_columns);
  const bool narrow = src.block_of(1) == 8 || dst.block_of(1) == 8;
  const bool depthwise = shapes.src[1] == groups && shapes.dst[1] == groups;
  std::int64_t& along = vector == VectorAxis::src ? in : out;
  if (!depthwise) along = rounded_up(along, narrow ? 8 : lanes);
  return 2 * places * static_cast<double>(groups * in * out) /
         (narrow ? costs::operations_on_8_lanes : costs::operations);
}

double seconds_to_leave(const TensorType& result, const Layout& layout) {
  if (result.shape.rank() < 4 || fast::channel_view(layout, result.shape)) return 0;
  return 2 * static_cast<double>(layout.bytes(result)) / costs::bytes_of_memory;
}

}  // namespace plexaura::onednn
