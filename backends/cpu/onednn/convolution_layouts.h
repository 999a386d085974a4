#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "backends/cpu/onednn/dnnl_compat.h"
#include "core/ops/conv2d.h"
#include "core/ops/conv3d.h"

namespace plexaura::onednn {

// The steps of a convolution's window along the axes after N and C, two or three.
struct ConvolutionWindow {
  memory::dims stride;
  memory::dims dilation;  // 1 means that neighbouring elements are read
  memory::dims padding;
  memory::dims padding_end;
  std::int64_t groups = 1;

  bool is_dense() const;  // stride 1 and dilation 1
};

ConvolutionWindow window_of(const Conv2dOptions& options);
ConvolutionWindow window_of(const Conv3dOptions& options);

// The shapes and the dtype of a convolution's operands, forward or backward.
struct ConvolutionShapes {
  Shape src;
  Shape weights;
  Shape dst;
  DType dtype;
};

// The layouts of source and destination, [N, C, H, W] or [N, C, D, H, W]. With `library`, oneDNN chooses the layouts of its fastest kernels.
// If these kernels do not support the number of channels, oneDNN uses reference code, which is a hundred
// times slower. For every convolution it has fast code in at least one of the other layouts.
enum class ConvolutionLayouts : std::uint8_t {
  library,
  // The source is row-major and has few channels, as images have; the library chooses the other layouts.
  library_behind_row_major,
  blocks_of_16,  // blocks of 16 channels; the zeros after the last channel count as channels
  blocks_of_8,
  channels_last,
  row_major,
  // Layouts of Winograd kernels, which transform tiles: fewer operations, but larger rounding errors.
  library_for_winograd
};

inline constexpr std::array direct_convolution_layouts{
    ConvolutionLayouts::library,       ConvolutionLayouts::library_behind_row_major,
    ConvolutionLayouts::blocks_of_16,  ConvolutionLayouts::blocks_of_8,
    ConvolutionLayouts::channels_last, ConvolutionLayouts::row_major};

// Returns descriptors for a query to the library, with a bias if `has_bias`. Returns nothing if the layouts
// do not fit the shapes.
std::optional<ConvolutionDescs> describe_operands(ConvolutionLayouts layouts, const ConvolutionShapes& shapes,
                                                  const ConvolutionWindow& window, bool has_bias);

// Returns the descriptor of row-major weights of groups, as the graph has them, with an additional first axis
// for the groups.
memory::desc row_major_groups(const TensorType& weights, std::int64_t groups);

// The channels that a kernel pads to whole vectors: the channels of its source, or those of its destination.
enum class VectorAxis : std::uint8_t { src, dst };

// Estimates the time of a kernel in seconds. `implementation` is oneDNN's name of the kernel.
double seconds_of_convolution(const ConvolutionShapes& shapes, std::int64_t groups, const Layout& src,
                              const Layout& dst, VectorAxis vector, const std::string& implementation);

// Returns the seconds that later ops lose if a convolution's result has no whole vectors of channels: most
// ops that read images then reorder them first.
double seconds_to_leave(const TensorType& result, const Layout& layout);

}  // namespace plexaura::onednn
