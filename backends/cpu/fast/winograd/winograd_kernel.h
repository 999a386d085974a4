#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/fast/winograd/winograd_loops.h"

namespace plexaura::fast {

// Says which image is divided into tiles of 4x4 pixels. A tile of the result is computed from 6x6 pixels of the source. A
// tile of the source adds to 6x6 pixels of the result, which is the gradient of a convolution by its source.
enum class TilesOf { result, source };

// Returns the image with fewer tiles for a gradient by the source of a convolution. `source` is the gradient of the
// convolution's result. Tiles of the source are chosen only if all tiles of a sample fit one product.
TilesOf fewer_tiles(const Shape& source, const Shape& result);

// A convolution with windows of 3x3 and stride 1 that runs on all threads. Its bits do not depend on their number.
class WinogradConvolution {
 public:
  // The first tile begins `above` rows and `before` columns outside of the image that is not divided. The weights are
  // read at `windows`. `threads` is the number of threads that the workspace is made for.
  WinogradConvolution(WinogradSource source, PixelView result, WindowOffsets windows, std::int64_t threads,
                      TilesOf tiles_of = TilesOf::result);

  std::size_t workspace() const;  // bytes
  // `bias` may be null. `workspace` has workspace() bytes.
  void run(const float* x, const float* weights, const float* bias, float* y, float* workspace) const;

 private:
  // The places in the workspace of the transformed source, the transformed windows, and the products of each thread.
  struct Workspace {
    float* source;
    float* windows;
    float* products;
  };
  Workspace divided(float* workspace) const;

  std::int64_t panels() const;
  std::int64_t source_step() const;
  std::int64_t windows_of_panel() const;  // elements
  std::int64_t window_copies() const;     // panels of transformed windows that the workspace holds
  bool has_one_pass() const;
  double nanoseconds(std::int64_t tiles) const;
  void transform(const TileRange& range, const float* x, float* to) const;
  void write(const TileRange& range, std::int64_t panel, const float* products, const float* bias,
             float* y) const;
  void multiply(const TileRange& pass, std::int64_t thread, const float* weights, const float* bias, float* y,
                const Workspace& at) const;

  WinogradSource source_;
  PixelView result_;
  WindowOffsets windows_;
  std::int64_t threads_;
  TilesOf tiles_of_;
  WinogradTiles tiles_;
  std::int64_t tiles_of_group_;  // the most tiles that are multiplied with a panel at once
  std::int64_t tiles_of_pass_;
};

}  // namespace plexaura::fast
