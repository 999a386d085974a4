#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "backends/cpu/onednn/dnnl_compat.h"
#include "core/ops/conv2d.h"

namespace plexaura::onednn {

// The shapes and the dtype of a convolution's operands, forward or backward.
struct ConvolutionShapes {
  Shape src;
  Shape weights;
  Shape dst;
  DType dtype;
};

// The layouts of source and destination. With `library` oneDNN takes those that its fastest kernels want. If
// these kernels refuse the channels, it falls back to reference code, which is a hundred times slower. For
// every convolution it has fast code in at least one of the other layouts.
enum class ConvolutionLayouts : std::uint8_t {
  library,
  library_behind_row_major,  // row-major source of few channels, as images arrive
  blocks_of_16,              // the zeros after the last channel count as channels
  blocks_of_8,
  channels_last,
  row_major,
  library_for_winograd  // Winograd kernels, which transform tiles: fewer operations, but more rounding
};

inline constexpr std::array direct_convolution_layouts{
    ConvolutionLayouts::library,       ConvolutionLayouts::library_behind_row_major,
    ConvolutionLayouts::blocks_of_16,  ConvolutionLayouts::blocks_of_8,
    ConvolutionLayouts::channels_last, ConvolutionLayouts::row_major};

// Returns the descriptors for the library's query, with a bias if `has_bias`. Returns nothing if the layouts
// do not suit the shapes.
std::optional<ConvolutionDescs> describe_operands(ConvolutionLayouts layouts, const ConvolutionShapes& shapes,
                                                  const Conv2dOptions& options, bool has_bias);

// Describes row-major weights of groups as the graph has them, with an additional first axis for the groups.
memory::desc row_major_groups(const TensorType& weights, std::int64_t groups);

// The channels that a kernel pads to whole vectors: those of its source, or those of its destination.
enum class VectorAxis : std::uint8_t { src, dst };

// Estimates the time of a kernel in seconds. `implementation` is oneDNN's name of the kernel.
double seconds_of_convolution(const ConvolutionShapes& shapes, std::int64_t groups, const Layout& src,
                              const Layout& dst, VectorAxis vector, const std::string& implementation);

// Returns the extra seconds that a convolution causes if its result has no whole vectors of channels: most
// ops that read images reorder them first.
double seconds_to_leave(const TensorType& result, const Layout& layout);

}  // namespace plexaura::onednn
