#include "backends/cpu/fast/batch_norm/batch_norm_kernels.h"

#include <cmath>
#include <tuple>

#include "backends/cpu/fast/batch_norm/batch_norm_loops.h"
#include "backends/cpu/fast/lanes.h"
#include "backends/cpu/fast/parallel.h"

namespace plexaura::fast {

namespace {

constexpr double nanoseconds_per_element = 0.6;
// Larger outputs are written past the caches, since the caches could not keep them until they are read.
constexpr std::int64_t bytes_to_stream = std::int64_t{8} << 20;

Rows rows_of(const ChannelView& view) { return {view.rows, view.row_stride}; }

// Two partial sums for each lane, of each block and sample.
struct Partials {
  double* numbers;
  const ChannelView& view;

  double* first(std::int64_t block, std::int64_t sample) const {
    return numbers + (block * view.samples + sample) * 2 * view.lanes;
  }
  double* second(std::int64_t block, std::int64_t sample) const { return first(block, sample) + view.lanes; }
};

std::size_t partial_bytes(const ChannelView& view) {
  return static_cast<std::size_t>(view.blocks * view.samples * 2 * view.lanes) * sizeof(double);
}

// Runs collect(block, sample) for all samples of a block, then distribute(block, sample, prepare(block, writes)) for
// each; `writes` is true in one call for each block. If there are at least as many blocks as threads, one thread does
// all of a block, so that its second pass finds the data in cache. Otherwise the threads share the samples.
template <class Collect, class Prepare, class Distribute>
void in_two_passes(const ChannelView& view, const Collect& collect, const Prepare& prepare,
                   const Distribute& distribute) {
  const double per_sample = nanoseconds_per_element * static_cast<double>(view.rows * view.lanes);
  const int threads = thread_count(view.blocks * view.samples, per_sample);
  if (view.blocks >= threads) {
    parallel_pieces(view.blocks, per_sample * static_cast<double>(view.samples),
                    [&](std::int64_t begin, std::int64_t end) {
                      for (std::int64_t block = begin; block < end; ++block) {
                        for (std::int64_t sample = 0; sample < view.samples; ++sample) collect(block, sample);
                        const auto by = prepare(block, true);
                        for (std::int64_t sample = view.samples; sample-- > 0;) distribute(block, sample, by);
                      }
                    });
    return;
  }
  const auto for_all = [&](const auto& body) {
    parallel_pieces(view.blocks * view.samples, per_sample, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) body(i / view.samples, i % view.samples);
    });
  };
  for_all(collect);
  for_all([&](std::int64_t block, std::int64_t sample) {
    distribute(block, sample, prepare(block, sample == 0));
  });
}

struct Moments {
  double mean;
  double variance;
};

// Combines the means and spreads of all samples for one lane of a block.
Moments moments_of(const ChannelView& view, const Partials& partials, std::int64_t block, std::int64_t lane) {
  const auto rows = static_cast<double>(view.rows);
  double mean = 0;
  double spread = 0;
  double count = 0;
  for (std::int64_t sample = 0; sample < view.samples; ++sample) {
    const double distance = partials.first(block, sample)[lane] - mean;
    const double total = count + rows;
    mean += distance * rows / total;
    spread += partials.second(block, sample)[lane] + distance * distance * count * rows / total;
    count = total;
  }
  return {mean, std::max(spread, 0.0) / count};
}

double wide(float value) { return static_cast<double>(value); }

// Normalises all vectors by the mean, factor and shift that `by_of(channel)` returns.
template <class ByOf>
void normalise_all(const ChannelView& view, const NormaliseArrays& arrays, const ByOf& by_of) {
  parallel_pieces(
      view.blocks * view.samples, nanoseconds_per_element * static_cast<double>(view.rows * view.lanes),
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const std::int64_t block = i % view.blocks;
          const std::int64_t at = view.offset(i / view.blocks, block);
          NormaliseBy by{};
          for (std::int64_t lane = 0; lane < view.lanes_of(block); ++lane)
            std::tie(by.mean[lane], by.factor[lane], by.shift[lane]) = by_of(block * view.lanes + lane);
          NormaliseArrays here = arrays;
          here.src += at;
          here.dst += at;
          if (here.addend != nullptr) here.addend += at;
          normalise(view.lanes, here, rows_of(view), by);
        }
      });
}

// diff_src = factor * grad
void scale_gradient(std::int64_t lanes, const BackwardArrays& arrays, Rows rows, const BackwardBy& by) {
  NormaliseBy factors{};
  std::copy_n(by.factor, most_lanes, factors.factor);
  normalise(lanes, {arrays.diff_dst, nullptr, arrays.diff_src, false, false}, rows, factors);
}

}  // namespace

std::size_t BatchNormForward::workspace() const { return partial_bytes(view); }

// NOLINTNEXTLINE(readability-non-const-parameter): partial sums are written there
void BatchNormForward::train(const Operands& of, double epsilon, double* workspace) const {
  const Partials partials{workspace, view};
  const bool streams =
      view.samples * view.sample_stride * 4 > bytes_to_stream && of.addend != of.dst && of.src != of.dst;
  const auto collect = [&](std::int64_t block, std::int64_t sample) {
    find_moments(view.lanes, of.src + view.offset(sample, block), rows_of(view),
                 partials.first(block, sample), partials.second(block, sample));
  };
  const auto prepare = [&](std::int64_t block, bool writes) {
    NormaliseBy by{};
    for (std::int64_t lane = 0; lane < view.lanes_of(block); ++lane) {
      const std::int64_t channel = block * view.lanes + lane;
      const Moments moments = moments_of(view, partials, block, lane);
      const double inverse = 1 / std::sqrt(moments.variance + epsilon);
      if (writes && of.mean != nullptr) of.mean[channel] = static_cast<float>(moments.mean);
      if (writes && of.variance != nullptr) of.variance[channel] = static_cast<float>(moments.variance);
      if (writes && of.inverse != nullptr) of.inverse[channel] = static_cast<float>(inverse);
      if (of.dst == nullptr) continue;
      by.mean[lane] = static_cast<float>(moments.mean);
      by.factor[lane] = static_cast<float>(wide(of.scale[channel]) * inverse);
      by.shift[lane] = of.shift[channel];
    }
    return by;
  };
  const auto distribute = [&](std::int64_t block, std::int64_t sample, const NormaliseBy& by) {
    if (of.dst == nullptr) return;
    const std::int64_t at = view.offset(sample, block);
    normalise(view.lanes,
              {of.src + at, of.addend != nullptr ? of.addend + at : nullptr, of.dst + at, relu, streams},
              rows_of(view), by);
    if (streams) finish_streams();
  };
  in_two_passes(view, collect, prepare, distribute);
}

void BatchNormForward::normalise_by(const Operands& of, const float* mean, const float* inverse) const {
  normalise_all(view, {of.src, of.addend, of.dst, relu, false}, [&](std::int64_t channel) {
    return std::tuple(mean[channel], of.scale[channel] * inverse[channel], of.shift[channel]);
  });
}

void MomentsBackward::run(const Operands& of) const {
  const auto count = static_cast<double>(view.count());
  normalise_all(view, {of.src, nullptr, of.diff_src, false, false}, [&](std::int64_t channel) {
    const double inverse = wide(of.inverse[channel]);
    const double tilt = inverse * inverse * inverse * wide(of.diff_inverse[channel]) / count;
    return std::tuple(of.mean[channel], static_cast<float>(-tilt),
                      static_cast<float>(wide(of.diff_mean[channel]) / count));
  });
}

std::size_t BatchNormBackward::workspace() const { return partial_bytes(view); }

// NOLINTNEXTLINE(readability-non-const-parameter): partial sums are written there
void BatchNormBackward::run(const Operands& of, double* workspace) const {
  const Partials partials{workspace, view};
  const auto arrays_at = [&](std::int64_t block, std::int64_t sample) {
    const std::int64_t at = view.offset(sample, block);
    return BackwardArrays{of.src + at,
                          of.diff_dst + at,
                          of.mask != nullptr ? of.mask + at : nullptr,
                          of.addend != nullptr ? of.addend + at : nullptr,
                          of.masked != nullptr ? of.masked + at : nullptr,
                          of.diff_src + at};
  };
  const auto collect = [&](std::int64_t block, std::int64_t sample) {
    float mean[most_lanes] = {};
    std::copy_n(of.mean + block * view.lanes, view.lanes_of(block), mean);
    double* sum = partials.first(block, sample);
    std::fill(sum, sum + 2 * view.lanes, 0.0);
    sum_gradients(view.lanes, arrays_at(block, sample), rows_of(view), mean, sum,
                  partials.second(block, sample));
  };
  const auto prepare = [&](std::int64_t block, bool writes) {
    BackwardBy by{};
    for (std::int64_t lane = 0; lane < view.lanes_of(block); ++lane) {
      const std::int64_t channel = block * view.lanes + lane;
      double sum = 0;
      double along = 0;
      for (std::int64_t sample = 0; sample < view.samples; ++sample) {
        sum += partials.first(block, sample)[lane];
        along += partials.second(block, sample)[lane];
      }
      const double inverse = wide(of.inverse[channel]);
      const double scale = wide(of.scale[channel]);
      const auto write = [&](float* to, double value) {
        if (writes && to != nullptr) to[channel] = static_cast<float>(value);
      };
      write(of.diff_scale, along * inverse);
      write(of.diff_shift, sum);
      write(of.diff_mean, -scale * inverse * sum);
      write(of.diff_inverse, scale * along);
      const auto count = static_cast<double>(view.count());
      by.mean[lane] = of.mean[channel];
      by.factor[lane] = static_cast<float>(scale * inverse);
      by.mean_grad[lane] = static_cast<float>(sum / count);
      by.tilt[lane] = static_cast<float>(along / count * inverse * inverse);
    }
    return by;
  };
  // If the first pass has written the masked gradient, reads this instead of applying the mask again.
  const auto distribute = [&](std::int64_t block, std::int64_t sample, const BackwardBy& by) {
    if (of.diff_src == nullptr) return;
    BackwardArrays arrays = arrays_at(block, sample);
    if (arrays.masked != nullptr) {
      arrays.diff_dst = arrays.masked;
      arrays.mask = nullptr;
    }
    total ? backward(view.lanes, arrays, rows_of(view), by)
          : scale_gradient(view.lanes, arrays, rows_of(view), by);
  };
  in_two_passes(view, collect, prepare, distribute);
}

}  // namespace plexaura::fast
