#include "backends/cpu/fast/winograd/winograd_weight_grad.h"

#include <algorithm>
#include <utility>

#include "backends/cpu/fast/parallel.h"
#include "backends/cpu/fast/winograd/winograd_gradient_loops.h"
#include "backends/cpu/fast/winograd/winograd_shapes.h"

namespace plexaura::fast {

namespace {

constexpr std::int64_t most_panels_of_item = 4;  // the products of 64 and 16 channels fit the second cache
constexpr std::int64_t items_of_thread = 4;      // at least, if there are so many panels
// Elements of transformed tiles in a pass for each thread: as many as its share of the last cache keeps.
constexpr std::int64_t elements_of_thread = 600'000;

}  // namespace

WinogradWeightGrad::WinogradWeightGrad(WinogradSource source, PixelView gradient, WindowOffsets windows,
                                       bool has_bias, std::int64_t threads)
    : source_(source),
      gradient_(gradient),
      windows_(std::move(windows)),
      has_bias_(has_bias),
      threads_(threads),
      tiles_(tiles_of_images(gradient_.samples, gradient_.height, gradient_.width)),
      source_panels_(panels_of(source_.pixels)),
      result_panels_(panels_of(gradient_)),
      panels_of_item_(std::clamp<std::int64_t>(source_panels_ * result_panels_ / (threads_ * items_of_thread),
                                               1, most_panels_of_item)) {
  // Every pass reads and writes all products, unless there is only one. So it has at least twice as many elements. Passes
  // end with sums of tiles, so that their number changes no bit.
  const std::int64_t of_tile = points_of_tile * (source_panels_ + result_panels_) * winograd_panel;
  const std::int64_t products = items() * products_of_item();
  const std::int64_t elements = std::max(threads_ * elements_of_thread, 2 * products);
  const std::int64_t sums = std::max<std::int64_t>(1, elements / of_tile / tiles_of_sum);
  tiles_of_pass_ = std::min(sums * tiles_of_sum, tiles_.count());
}

std::int64_t WinogradWeightGrad::groups() const { return divided_up(source_panels_, panels_of_item_); }

std::int64_t WinogradWeightGrad::items() const { return result_panels_ * groups(); }

WinogradWeightGrad::Item WinogradWeightGrad::item_at(std::int64_t index) const {
  const std::int64_t channels = panels_of_item_ * winograd_panel;
  const std::int64_t first = index % groups() * channels;
  return {first, std::min(channels, source_.channels() - first), index / groups()};
}

PointPlaces WinogradWeightGrad::source_places() const {
  const std::int64_t panel = tiles_of_pass_ * winograd_panel;
  return {step_of_points(source_panels_ * panel), panel, winograd_panel};
}

PointPlaces WinogradWeightGrad::gradient_places() const {
  const std::int64_t panel = tiles_of_pass_ * winograd_panel;
  return {step_of_points(result_panels_ * panel), panel, winograd_panel};
}

std::int64_t WinogradWeightGrad::products_of_item() const {
  return points_of_tile * step_of_points(panels_of_item_ * winograd_panel * winograd_panel);
}

WinogradWeightGrad::Workspace WinogradWeightGrad::divided(float* workspace) const {
  float* const source = workspace + 2 * channels_of_bias();  // a double is as long as two floats
  float* const gradient = source + points_of_tile * source_places().point;
  float* const tile_sums = gradient + points_of_tile * gradient_places().point;
  return {reinterpret_cast<double*>(workspace), source, gradient, tile_sums,
          tile_sums + tiles_of_pass_ * channels_of_bias()};
}

std::size_t WinogradWeightGrad::workspace() const {
  const std::int64_t of_tiles = points_of_tile * (source_places().point + gradient_places().point);
  const std::int64_t of_products = (has_one_pass() ? threads_ : items()) * products_of_item();
  return static_cast<std::size_t>((2 + tiles_of_pass_) * channels_of_bias() + of_tiles + of_products) *
         sizeof(float);
}

void WinogradWeightGrad::run(const float* x, const float* grad_out, float* weights, float* bias,
                             float* workspace) const {
  const Workspace at = divided(workspace);
  std::fill_n(at.sums, channels_of_bias(), 0.0);
  const double multiplications_of_tile =
      static_cast<double>(points_of_tile * source_panels_ * winograd_panel * result_panels_ * winograd_panel);
  for (std::int64_t first = 0; first < tiles_.count(); first += tiles_of_pass_) {
    const TileRange pass{first, std::min(first + tiles_of_pass_, tiles_.count())};
    transform(pass, x, grad_out, at);
    if (has_bias_) add_tile_sums(pass, at);
    const double multiplications = static_cast<double>(pass.end - pass.begin) * multiplications_of_tile;
    parallel_pieces(threads_,
                    winograd_multiplication_nanoseconds * multiplications / static_cast<double>(threads_),
                    [&](std::int64_t begin, std::int64_t end) {
                      for (std::int64_t thread = begin; thread < end; ++thread)
                        multiply(pass, thread, weights, at);
                    });
  }
  if (has_bias_) std::copy_n(at.sums, gradient_.channels, bias);
}

void WinogradWeightGrad::transform(const TileRange& pass, const float* x, const float* grad_out,
                                   const Workspace& at) const {
  const auto channels = static_cast<double>((source_panels_ + result_panels_) * winograd_panel);
  parallel_pieces(pass.end - pass.begin, winograd_transform_nanoseconds * channels,
                  [&](std::int64_t begin, std::int64_t end) {
                    const TileRange range{pass.begin + begin, pass.begin + end};
                    transform_source(tiles_, source_, x, range, at.source + begin * winograd_panel,
                                     source_places());
                    float* const sums = has_bias_ ? at.tile_sums + begin * channels_of_bias() : nullptr;
                    transform_result_grad(tiles_, gradient_, grad_out, range,
                                          at.gradient + begin * winograd_panel, gradient_places(), sums);
                  });
}

void WinogradWeightGrad::add_tile_sums(const TileRange& pass, const Workspace& at) const {
  const std::int64_t channels = channels_of_bias();
  for (std::int64_t tile = 0; tile < pass.end - pass.begin; ++tile)
    for (std::int64_t channel = 0; channel < channels; ++channel)
      at.sums[channel] += at.tile_sums[tile * channels + channel];
}

// Computes one thread's share of a pass. After the last pass, writes the weights.
void WinogradWeightGrad::multiply(const TileRange& pass, std::int64_t thread, float* weights,
                                  const Workspace& at) const {
  for (std::int64_t index = items() * thread / threads_; index < items() * (thread + 1) / threads_; ++index) {
    const Item item = item_at(index);
    const WeightGradProduct product{pass.end - pass.begin, item.channels, source_places(), gradient_places()};
    float* const products = at.products + (has_one_pass() ? thread : index) * products_of_item();
    multiply_tiles(product, at.source + item.first / winograd_panel * product.source.panel,
                   at.gradient + item.panel * product.gradient.panel, products, pass.begin > 0);
    if (pass.end == tiles_.count())
      write_windows(windows_, item.first, item.panel, product, products, weights);
  }
}

}  // namespace plexaura::fast
