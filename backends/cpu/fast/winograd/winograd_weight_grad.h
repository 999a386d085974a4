#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/fast/winograd/winograd_weight_grad_loops.h"

namespace plexaura::fast {

// The gradient of the weights of a convolution with windows of 3x3 and stride 1, and of its bias, on all threads. Its bits
// do not depend on their number.
class WinogradWeightGrad {
 public:
  // The gradient of the weights is written to `windows`. `threads` is the number of threads that the workspace is made
  // for.
  WinogradWeightGrad(WinogradSource source, PixelView gradient, WindowOffsets windows, bool has_bias,
                     std::int64_t threads);

  std::size_t workspace() const;  // bytes
  // `bias` is null if the convolution has none. `workspace` has workspace() bytes.
  void run(const float* x, const float* grad_out, float* weights, float* bias, float* workspace) const;

 private:
  // The places in the workspace of the sums over pixels of each channel, the transformed source and gradient of a pass,
  // the sums over the pixels of each tile of it, and the products.
  struct Workspace {
    double* sums;
    float* source;
    float* gradient;
    float* tile_sums;
    float* products;
  };
  Workspace divided(float* workspace) const;

  // Some panels of the source's channels and one panel of the result's. They are computed together.
  struct Item {
    std::int64_t first;     // channel of the source
    std::int64_t channels;  // of the source
    std::int64_t panel;     // of the result
  };
  std::int64_t groups() const;  // of panels of the source's channels
  std::int64_t items() const;
  Item item_at(std::int64_t index) const;

  bool has_one_pass() const { return tiles_of_pass_ == tiles_.count(); }
  PointPlaces source_places() const;
  PointPlaces gradient_places() const;
  std::int64_t products_of_item() const;  // elements
  std::int64_t channels_of_bias() const { return has_bias_ ? gradient_.blocks * gradient_.lanes : 0; }
  void transform(const TileRange& pass, const float* x, const float* grad_out, const Workspace& at) const;
  void multiply(const TileRange& pass, std::int64_t thread, float* weights, const Workspace& at) const;
  void add_tile_sums(const TileRange& pass, const Workspace& at) const;

  WinogradSource source_;
  PixelView gradient_;
  WindowOffsets windows_;
  bool has_bias_;
  std::int64_t threads_;
  WinogradTiles tiles_;
  std::int64_t source_panels_;
  std::int64_t result_panels_;
  std::int64_t panels_of_item_;
  std::int64_t tiles_of_pass_;
};

}  // namespace plexaura::fast
