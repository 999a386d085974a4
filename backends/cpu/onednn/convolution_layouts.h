#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "backends/cpu/onednn/dnnl_compat.h"
#include "core/ops/conv2d.h"

namespace plexaura::onednn {

// The operands of a convolution, forward or back, all of one dtype.
struct ConvolutionShapes {
  Shape src;
  Shape weights;
  Shape dst;
  DType dtype;
};

// How source and destination may lie. Left alone the library takes what its fastest kernels want, and where
// these refuse the channels it falls to reference code that is a hundred times slower. It has fast code for
// every convolution in one of the other layouts.
enum class ConvolutionLayouts : std::uint8_t {
  library,
  library_behind_row_major,  // a source of few channels is read as images come
  blocks_of_16,              // the zeros behind the last channel are taken for channels
  blocks_of_8,
  channels_last,
  row_major,
  library_for_winograd  // those of its kernels that transform tiles: fewer operations, but more rounding
};

inline constexpr std::array direct_convolution_layouts{
    ConvolutionLayouts::library,       ConvolutionLayouts::library_behind_row_major,
    ConvolutionLayouts::blocks_of_16,  ConvolutionLayouts::blocks_of_8,
    ConvolutionLayouts::channels_last, ConvolutionLayouts::row_major};

// What the library is asked for; empty where the layouts do not suit the shapes. With a bias where
// `has_bias`.
std::optional<ConvolutionDescs> describe_operands(ConvolutionLayouts layouts, const ConvolutionShapes& shapes,
                                                  const Conv2dOptions& options, bool has_bias);

// The weights of groups as the graph has them, with an axis for the groups.
memory::desc row_major_groups(const TensorType& weights, std::int64_t groups);

// The estimate for a kernel that works on whole vectors of `vector`, the channels of its source or its
// destination.
enum class VectorAxis : std::uint8_t { src, dst };
double seconds_of_convolution(const ConvolutionShapes& shapes, std::int64_t groups, const Layout& src,
                              const Layout& dst, VectorAxis vector, const std::string& implementation);

// What it adds to a convolution that its result lies without whole vectors of channels: most of what reads
// images moves them first.
double seconds_to_leave(const TensorType& result, const Layout& layout);

}  // namespace plexaura::onednn
