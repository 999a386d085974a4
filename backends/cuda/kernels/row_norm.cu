// Normalisations of rows. A team of threads computes one row, in float (float64: in double), and joins its sums in double.

#include <limits>

#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/row_norm.h"
#include "backends/cuda/kernels/row_teams.h"

namespace plexaura::cuda {

// The values that a normalisation stores for others than the kernels of its gradient. The address of a value that no one
// reads is null.
template <class R>
struct StoredRows {
  Global<R> x;
  Global<R> centred;
  Global<R> normal;
  Global<R> result;

  bool any() const { return x || centred || normal || result; }
};

// x has elements X, and the result has Y. All numbers of rows are Compute<X>, which is Compute<Y>.
template <class X, class Y, int width, bool stores>
struct RowNormKernel {
  using R = Compute<X>;

  RowTeams teams;
  Global<const X> x;
  RowScale<R> scale;
  RowScale<R> shift;
  Global<const R> epsilon;
  Global<Y> result;
  Global<R> mean;  // the address of each is null if no one reads it
  Global<R> inverse;
  Global<R> root;
  StoredRows<R> stored;
  bool centres;

  static constexpr int groups_at_once = 2;  // of the passes that only add up
  static constexpr int blocks_at_once = sizeof(R) == 4 ? 4 : 3;
  // Elements are multiplied by this before they are added up, so that a sum of 64 does not overflow.
  static constexpr R share = R(1) / 64;

  // The numbers of a row.
  struct Moments {
    R mean;
    R inverse;
  };

  PLEXAURA_DEVICE auto reader() const {
    return [this](std::int64_t place) { return x.template several<width>(place); };
  }

  // Leaves a number near the mean of each row with the first thread of its team.
  template <class Sums, class Of, class RowOf>
  PLEXAURA_DEVICE void find_centres(Block& block, Sums& sums, Of& of, const RowOf& row_of) const {
    block.each_thread([&](int thread) {
      const RowSums<1> sum = teams.template sum_of<1, R, width, groups_at_once>(
          row_of(thread), thread, reader(), [](std::int64_t, const Several<X, width>& values, R* total) {
            for (int k = 0; k < width; ++k) total[0] = multiply_add(R(widen(values[k])), share, total[0]);
          });
      sums[thread] = RowSums<2>{{sum.of[0], 0}};
    });
    teams.template join<RowSums<2>>(block, sums);
    block.each_thread([&](int thread) {
      if (!teams.leads(thread)) return;
      const double sum = static_cast<RowSums<2>>(sums[thread]).of[0];
      of[thread] = Moments{static_cast<R>(sum / share / static_cast<double>(teams.extent)), R(0)};
    });
  }

  // Adds up the differences from the numbers of find_centres(), and their squares.
  template <class Sums, class Of, class RowOf>
  PLEXAURA_DEVICE void sum_squares(Block& block, Sums& sums, Of& of, const RowOf& row_of) const {
    block.each_thread([&](int thread) {
      const R centre = centres ? static_cast<Moments>(of[teams.leader_of(thread)]).mean : R(0);
      sums[thread] = teams.template sum_of<2, R, width, groups_at_once>(
          row_of(thread), thread, reader(), [&](std::int64_t, const Several<X, width>& values, R* total) {
            for (int k = 0; k < width; ++k) {
              const R difference = widen(values[k]) - centre;
              total[0] += difference;
              total[1] = multiply_add(difference, difference, total[1]);
            }
          });
    });
    teams.template join<RowSums<2>>(block, sums);
  }

  // Returns the moments of a row, and stores its numbers. If the sum of the differences overflows, the centre is the
  // mean: the squares then overflow too.
  PLEXAURA_DEVICE Moments finish(std::int64_t row, const RowSums<2>& sums, R centre) const {
    const auto count = static_cast<double>(teams.extent);
    const double found = sums.of[0] / count;
    const double moved = centres && std::fabs(found) < std::numeric_limits<double>::infinity() ? found : 0.0;
    const double spread = sums.of[1] / count - moved * moved;
    const R mean_of_row = static_cast<R>(static_cast<double>(centre) + moved);
    const R root_of_row = Math::sqrt(static_cast<R>(spread < 0 ? 0.0 : spread) + epsilon[0]);
    const R inverse_of_row = 1 / root_of_row;
    if (mean) mean[row] = mean_of_row;
    if (root) root[row] = root_of_row;
    if (inverse) inverse[row] = inverse_of_row;
    return {mean_of_row, inverse_of_row};
  }

  PLEXAURA_DEVICE void write(std::int64_t row, int thread, const Moments& of) const {
    const std::int64_t offset = scale.offset_of(row);
    teams.template each_group<width, 1>(
        row, thread, reader(), [&](std::int64_t place, const Several<X, width>& values) {
          const Several<R, width> scales = scale.template at<width>(place + offset, 1);
          const Several<R, width> shifts = shift.template at<width>(place + offset, 0);
          Several<R, width> y;
          for (int k = 0; k < width; ++k)
            y[k] = multiply_add((R(widen(values[k])) - of.mean) * of.inverse, scales[k], shifts[k]);
          store_if(result, place, narrowed<Y>(y));
          if constexpr (stores) store(place, values, of, y);
        });
  }

  PLEXAURA_DEVICE void store(std::int64_t place, const Several<X, width>& values, const Moments& of,
                             const Several<R, width>& y) const {
    Several<R, width> wide;
    Several<R, width> centred;
    Several<R, width> normal;
    for (int k = 0; k < width; ++k) {
      wide[k] = widen(values[k]);
      centred[k] = wide[k] - of.mean;
      normal[k] = centred[k] * of.inverse;
    }
    store_if(stored.x, place, wide);
    store_if(stored.centred, place, centred);
    store_if(stored.normal, place, normal);
    store_if(stored.result, place, y);
  }

  PLEXAURA_DEVICE void operator()(Block& block) const {
    PLEXAURA_SHARED(block, RowSums<2>, sums, threads);
    PLEXAURA_SHARED(block, Moments, of, threads);
    teams.each_round(block, [&](const auto& row_of) {
      if (centres) find_centres(block, sums, of, row_of);
      sum_squares(block, sums, of, row_of);
      block.each_thread([&](int thread) {
        if (!teams.leads(thread) || row_of(thread) >= teams.rows) return;
        const R centre = centres ? static_cast<Moments>(of[thread]).mean : R(0);
        of[thread] = finish(row_of(thread), sums[thread], centre);
      });
      block.each_thread([&](int thread) {
        if (row_of(thread) < teams.rows) write(row_of(thread), thread, of[teams.leader_of(thread)]);
      });
    });
  }
};

namespace {

template <class X, class Y>
void normalise_rows(const Call& call, const RowNormValues<View>& of, const FusedRowNorm& norm) {
  using R = Compute<X>;
  const RowNormShape shape = shape_of(of, of.result);
  const bool casts = norm.casts_result;
  const StoredRows<R> stored{out_if<R>(of.wide_x), out_if<R>(of.centred), out_if<R>(of.normal),
                             casts ? out_if<R>(of.result) : Global<R>()};
  dispatch_width<elements_at_once<X, Y>>(shape, [&]<int width>(Width<width>) {
    const RowTeams teams(shape.rows, shape.extent, width);
    const auto launch = [&](auto stores) {
      enqueue(call, teams.blocks(),
              RowNormKernel<X, Y, width, stores>{
                  teams, of.x.in<X>(), scale_of<R>(shape, of.scale), scale_of<R>(shape, of.shift),
                  of.epsilon.in<R>(), out_if<Y>(casts ? of.narrow_result : of.result), out_if<R>(of.mean),
                  out_if<R>(of.inverse), out_if<R>(of.root), stored, norm.of.centres});
    };
    // Single elements are rare, so that they have one kernel for both cases.
    if (width == 1 || stored.any()) return launch(std::true_type());
    if constexpr (width > 1) launch(std::false_type());
  });
}

}  // namespace

void enqueue_row_norm(const Call& call, const FusedRowNorm& norm) {
  const RowNormValues<View> of(norm, call.inputs, call.outputs);
  const DType result = (norm.casts_result ? of.narrow_result : of.result).dtype();
  dispatch_two(of.x.dtype(), result, [&]<class X, class Y>(std::type_identity<X>, std::type_identity<Y>) {
    normalise_rows<X, Y>(call, of, norm);
  });
}

}  // namespace plexaura::cuda
