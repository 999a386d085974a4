#include "backends/cpu/fast/winograd/winograd_kernel.h"

#include <algorithm>
#include <utility>

#include "backends/cpu/fast/parallel.h"
#include "backends/cpu/fast/winograd/winograd_gradient_loops.h"
#include "backends/cpu/fast/winograd/winograd_shapes.h"

namespace plexaura::fast {

namespace {

constexpr std::int64_t most_tiles_of_group = 64;
constexpr std::int64_t product_step = step_of_points(most_tiles_of_group * winograd_panel);
// Elements of the transformed source for each thread: about as many as a second cache keeps.
constexpr std::int64_t source_of_thread = 300'000;

}  // namespace

TilesOf fewer_tiles(const Shape& source, const Shape& result) {
  const std::int64_t of_source = tiles_of_images(1, source[2], source[3]).count();
  const std::int64_t of_result = tiles_of_images(1, result[2], result[3]).count();
  return of_source < of_result && of_source <= most_tiles_of_group ? TilesOf::source : TilesOf::result;
}

WinogradConvolution::WinogradConvolution(WinogradSource source, PixelView result, WindowOffsets windows,
                                         std::int64_t threads, TilesOf tiles_of)
    : source_(source), result_(result), windows_(std::move(windows)), threads_(threads), tiles_of_(tiles_of) {
  const PixelView& divided = tiles_of == TilesOf::result ? result_ : source_.pixels;
  tiles_ = tiles_of_images(divided.samples, divided.height, divided.width);
  // Tiles of a source share pixels of the result, so one thread computes all those of a sample.
  const std::int64_t inseparable = tiles_of == TilesOf::result ? 1 : tiles_.down * tiles_.across;
  tiles_of_group_ = most_tiles_of_group / inseparable * inseparable;
  const std::int64_t of_group = points_of_tile * tiles_of_group_ * source_.channels();
  const std::int64_t groups = std::max<std::int64_t>(1, threads_ * source_of_thread / of_group);
  tiles_of_pass_ = std::min(groups * tiles_of_group_, tiles_.count());
}

std::int64_t WinogradConvolution::panels() const { return panels_of(result_); }

std::int64_t WinogradConvolution::source_step() const {
  return step_of_points(tiles_of_pass_ * source_.channels());
}

std::int64_t WinogradConvolution::windows_of_panel() const {
  return points_of_tile * step_of_points(source_.channels() * winograd_panel);
}

// With one pass each thread transforms the windows of a panel itself, right before it uses them.
bool WinogradConvolution::has_one_pass() const { return tiles_of_pass_ == tiles_.count(); }

std::int64_t WinogradConvolution::window_copies() const { return has_one_pass() ? threads_ : panels(); }

WinogradConvolution::Workspace WinogradConvolution::divided(float* workspace) const {
  float* const windows = workspace + points_of_tile * source_step();
  return {workspace, windows, windows + window_copies() * windows_of_panel()};
}

std::size_t WinogradConvolution::workspace() const {
  const std::int64_t elements = points_of_tile * source_step() + window_copies() * windows_of_panel() +
                                threads_ * points_of_tile * product_step;
  return static_cast<std::size_t>(elements) * sizeof(float);
}

double WinogradConvolution::nanoseconds(std::int64_t tiles) const {
  return winograd_multiplication_nanoseconds *
         static_cast<double>(points_of_tile * tiles * source_.channels() * panels() * winograd_panel);
}

void WinogradConvolution::run(const float* x, const float* weights, const float* bias, float* y,
                              float* workspace) const {
  const Workspace at = divided(workspace);
  const auto transform_nanoseconds = static_cast<double>(source_.channels()) * winograd_transform_nanoseconds;
  if (!has_one_pass())
    parallel_pieces(panels(), transform_nanoseconds * static_cast<double>(winograd_panel),
                    [&](std::int64_t begin, std::int64_t end) {
                      for (std::int64_t panel = begin; panel < end; ++panel)
                        transform_windows(windows_, weights, panel, source_.channels(),
                                          at.windows + panel * windows_of_panel());
                    });
  for (std::int64_t first = 0; first < tiles_.count(); first += tiles_of_pass_) {
    const TileRange pass{first, std::min(first + tiles_of_pass_, tiles_.count())};
    const std::int64_t count = pass.end - pass.begin;
    parallel_pieces(count, transform_nanoseconds, [&](std::int64_t begin, std::int64_t end) {
      transform({first + begin, first + end}, x, at.source + begin * source_.channels());
    });
    parallel_pieces(threads_, nanoseconds(count) / static_cast<double>(threads_),
                    [&](std::int64_t begin, std::int64_t end) {
                      for (std::int64_t thread = begin; thread < end; ++thread)
                        multiply(pass, thread, weights, bias, y, at);
                    });
  }
}

void WinogradConvolution::transform(const TileRange& range, const float* x, float* to) const {
  const PointPlaces places{source_step(), winograd_panel, source_.channels()};
  if (tiles_of_ == TilesOf::result)
    transform_source(tiles_, source_, x, range, to, places);
  else
    transform_result_grad(tiles_, source_.pixels, x, range, to, places, nullptr);
}

void WinogradConvolution::write(const TileRange& range, std::int64_t panel, const float* products,
                                const float* bias, float* y) const {
  if (tiles_of_ == TilesOf::result)
    write_tiles(tiles_, result_, range, panel, products, product_step, bias, y);
  else
    write_source_grad(tiles_, {result_, source_.above, source_.before}, range, panel, products, product_step,
                      y);
}

// Computes one thread's share of a pass. The items are pairs of a panel and a group of tiles.
void WinogradConvolution::multiply(const TileRange& pass, std::int64_t thread, const float* weights,
                                   const float* bias, float* y, const Workspace& at) const {
  const std::int64_t groups = divided_up(pass.end - pass.begin, tiles_of_group_);
  const std::int64_t items = panels() * groups;
  float* const products = at.products + thread * points_of_tile * product_step;
  float* const own_windows = at.windows + thread * windows_of_panel();
  std::int64_t transformed = -1;
  for (std::int64_t item = items * thread / threads_; item < items * (thread + 1) / threads_; ++item) {
    const std::int64_t panel = item / groups;
    if (has_one_pass() && panel != transformed) {
      transform_windows(windows_, weights, panel, source_.channels(), own_windows);
      transformed = panel;
    }
    const float* const windows = has_one_pass() ? own_windows : at.windows + panel * windows_of_panel();
    const std::int64_t first = item % groups * tiles_of_group_;
    const TileRange range{pass.begin + first, std::min(pass.begin + first + tiles_of_group_, pass.end)};
    multiply_points({range.end - range.begin, source_.channels(), source_step(), product_step},
                    at.source + first * source_.channels(), windows, products);
    write(range, panel, products, bias, y);
  }
}

}  // namespace plexaura::fast
