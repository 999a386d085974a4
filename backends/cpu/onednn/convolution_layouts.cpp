#include "backends/cpu/onednn/convolution_layouts.h"

#include "backends/cpu/fast/channel_view.h"
#include "core/host/costs.h"

namespace plexaura::onednn {

namespace {

constexpr std::int64_t lanes = 16;  // number of float32 values in the widest registers
constexpr std::int64_t few_channels = 16;

std::int64_t rounded_up(std::int64_t count, std::int64_t multiple) {
  return (count + multiple - 1) / multiple * multiple;
}

Shape with_channels(const Shape& shape, std::int64_t channels) {
  return {shape[0], channels, shape[2], shape[3]};
}

std::int64_t block_of(ConvolutionLayouts layouts) {
  if (layouts == ConvolutionLayouts::blocks_of_16) return 16;
  return layouts == ConvolutionLayouts::blocks_of_8 ? 8 : 1;
}

ConvolutionShapes in_blocks(const ConvolutionShapes& shapes, std::int64_t block) {
  const std::int64_t in = rounded_up(shapes.src[1], block);
  const std::int64_t out = rounded_up(shapes.dst[1], block);
  return {with_channels(shapes.src, in),
          {out, in, shapes.weights[2], shapes.weights[3]},
          with_channels(shapes.dst, out),
          shapes.dtype};
}

memory::dims dims_in_groups(const Shape& weights, std::int64_t groups) {
  return {groups, weights[0] / groups, weights[1], weights[2], weights[3]};
}

memory::desc weights_desc(const Shape& weights, std::int64_t groups, DType dtype) {
  return any_layout(groups == 1 ? dims_of(weights) : dims_in_groups(weights, groups), dtype);
}

ConvolutionDescs with_layouts(const ConvolutionShapes& shapes, const Conv2dOptions& options,
                              const std::optional<Layout>& src, const std::optional<Layout>& dst) {
  const auto desc = [&](const Shape& shape, const std::optional<Layout>& layout) {
    return layout ? *desc_of(*layout, {shapes.dtype, shape}) : any_layout(dims_of(shape), shapes.dtype);
  };
  const Size2d padding_end = options.padding_end.value_or(options.padding);
  return {desc(shapes.src, src),
          weights_desc(shapes.weights, options.groups, shapes.dtype),
          std::nullopt,
          desc(shapes.dst, dst),
          {options.stride.h, options.stride.w},
          {options.dilation.h - 1, options.dilation.w - 1},
          {options.padding.h, options.padding.w},
          {padding_end.h, padding_end.w}};
}

// Describes a convolution for Winograd kernels. oneDNN 2 has such kernels for windows of 3x3; oneDNN 3 has
// none.
std::optional<ConvolutionDescs> describe_winograd(const ConvolutionShapes& shapes,
                                                  const Conv2dOptions& options) {
  const bool fits = shapes.weights[2] == 3 && shapes.weights[3] == 3 && options.stride == Size2d{} &&
                    options.dilation == Size2d{} && options.groups == 1;
  if (!fits) return std::nullopt;
  ConvolutionDescs descs = with_layouts(shapes, options, std::nullopt, std::nullopt);
  descs.algorithm = dnnl::algorithm::convolution_winograd;
  return descs;
}

std::optional<ConvolutionDescs> describe_images(ConvolutionLayouts layouts, const ConvolutionShapes& shapes,
                                                const Conv2dOptions& options) {
  const std::int64_t block = block_of(layouts);
  const Layout blocked({0, 1, 2, 3}, {{1, block}});
  const Layout rows = Layout::row_major(4);
  const Layout last({0, 2, 3, 1});
  switch (layouts) {
    case ConvolutionLayouts::library:
      return with_layouts(shapes, options, std::nullopt, std::nullopt);
    case ConvolutionLayouts::library_behind_row_major:
      if (shapes.src[1] >= few_channels) return std::nullopt;
      return with_layouts(shapes, options, rows, std::nullopt);
    case ConvolutionLayouts::blocks_of_16:
    case ConvolutionLayouts::blocks_of_8:
      if (options.groups > 1) return std::nullopt;
      return with_layouts(in_blocks(shapes, block), options, blocked, blocked);
    case ConvolutionLayouts::channels_last:
      return with_layouts(shapes, options, last, last);
    case ConvolutionLayouts::row_major:
      return with_layouts(shapes, options, rows, rows);
    case ConvolutionLayouts::library_for_winograd:
      return describe_winograd(shapes, options);
  }
  return std::nullopt;
}

}  // namespace

std::optional<ConvolutionDescs> describe_operands(ConvolutionLayouts layouts, const ConvolutionShapes& shapes,
                                                  const Conv2dOptions& options, bool has_bias) {
  auto descs = describe_images(layouts, shapes, options);
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
  const double places = static_cast<double>(pixels * shapes.weights[2] * shapes.weights[3]);
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
  if (result.shape.rank() != 4 || fast::channel_view(layout, result.shape)) return 0;
  return 2 * static_cast<double>(layout.bytes(result)) / costs::bytes_of_memory;
}

}  // namespace plexaura::onednn
