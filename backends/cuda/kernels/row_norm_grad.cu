// Gradients of normalisations of rows. A team of threads computes one row of the gradient by x, in float (float64: in
// double), and joins its sums in double. The gradients of scale and shift are sums over rows, divided into splits.

#include "backends/cuda/kernels/channel_sums.h"
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/row_norm.h"
#include "backends/cuda/kernels/row_teams.h"

namespace plexaura::cuda {

// The operands of a gradient that belong to elements: the gradient of the result, with elements G, and x, or x - mean
// if there is no mean, with elements X.
template <class X, class G>
struct RowOperands {
  using R = Compute<X>;
  Global<const G> grad;
  Global<const X> x;
  Global<const R> mean;
  Global<const R> inverse;

  template <int width>
  struct Read {
    Several<G, width> grad;
    Several<X, width> x;
  };
  template <int width>
  PLEXAURA_DEVICE Read<width> read(std::int64_t place) const {
    return {grad.template several<width>(place), x.template several<width>(place)};
  }
  PLEXAURA_DEVICE R mean_of(std::int64_t row) const { return mean ? static_cast<R>(mean[row]) : R(0); }
};

// The gradient by x, with elements X.
template <class X, class G, int width>
struct RowNormGradKernel {
  using R = Compute<X>;
  using Read = typename RowOperands<X, G>::template Read<width>;

  RowTeams teams;
  RowOperands<X, G> operands;
  RowScale<R> scale;
  Global<const R> root;
  Global<const R> addend;  // its address is null if there is none
  Global<X> result;
  Global<R> wide_result;  // the result before it is cast to X; its address is null if no one reads it
  bool centres;

  static constexpr int groups_at_once = 1;
  static constexpr int blocks_at_once = sizeof(R) == 4 ? 4 : 3;

  // Element i of the result is grad_i * scale_i * inverse + slope * (x_i - mean) + level.
  struct Line {
    R mean;
    R inverse;
    R slope;
    R level;
  };

  PLEXAURA_DEVICE auto reader() const {
    return [this](std::int64_t place) { return operands.template read<width>(place); };
  }

  // Adds up the gradient times the scale, and that times x - mean, and x - mean.
  PLEXAURA_DEVICE RowSums<3> sum(std::int64_t row, int thread) const {
    if (row >= teams.rows) return RowSums<3>::of_none();
    const std::int64_t offset = scale.offset_of(row);
    const R mean = operands.mean_of(row);
    return teams.template sum_of<3, R, width, groups_at_once>(
        row, thread, reader(), [&](std::int64_t place, const Read& read, R* total) {
          const Several<R, width> scales = scale.template at<width>(place + offset, 1);
          for (int k = 0; k < width; ++k) {
            const R scaled = R(widen(read.grad[k])) * scales[k];
            const R centred = R(widen(read.x[k])) - mean;
            total[0] += scaled;
            total[1] = multiply_add(scaled, centred, total[1]);
            total[2] += centred;
          }
        });
  }

  PLEXAURA_DEVICE Line line_of(std::int64_t row, const RowSums<3>& sums) const {
    const auto count = static_cast<R>(teams.extent);
    const R inverse = operands.inverse[row];
    const R root_of_row = root[row];
    const R slope = -(static_cast<R>(sums.of[1]) / root_of_row * inverse) / (2 * root_of_row) / count;
    // An infinite slope times x - mean, which has both signs, adds up to NaN.
    const double sum = static_cast<double>(inverse) * sums.of[0] +
                       2 * static_cast<double>(slope) * sums.of[2] + static_cast<double>(slope - slope);
    return {operands.mean_of(row), inverse, 2 * slope, centres ? -static_cast<R>(sum) / count : R(0)};
  }

  PLEXAURA_DEVICE void write(std::int64_t row, int thread, const Line& line) const {
    const std::int64_t offset = scale.offset_of(row);
    teams.template each_group<width, groups_at_once>(
        row, thread, reader(), [&](std::int64_t place, const Read& read) {
          const Several<R, width> scales = scale.template at<width>(place + offset, 1);
          Several<R, width> y;
          for (int k = 0; k < width; ++k) {
            const R along = multiply_add(line.slope, R(widen(read.x[k])) - line.mean, line.level);
            // Rounded before the addition, so that the gradient of a row of one element is 0.
            y[k] = R(widen(read.grad[k])) * scales[k] * line.inverse + along;
          }
          if (addend) {
            const auto added = addend.template several<width>(place);
            for (int k = 0; k < width; ++k) y[k] += added[k];
          }
          store_if(result, place, narrowed<X>(y));
          store_if(wide_result, place, y);
        });
  }

  PLEXAURA_DEVICE void operator()(Block& block) const {
    PLEXAURA_SHARED(block, RowSums<3>, sums, threads);
    PLEXAURA_SHARED(block, Line, of, threads);
    teams.each_round(block, [&](const auto& row_of) {
      block.each_thread([&](int thread) { sums[thread] = sum(row_of(thread), thread); });
      teams.template join<RowSums<3>>(block, sums);
      block.each_thread([&](int thread) {
        if (teams.leads(thread) && row_of(thread) < teams.rows)
          of[thread] = line_of(row_of(thread), sums[thread]);
      });
      block.each_thread([&](int thread) {
        if (row_of(thread) < teams.rows) write(row_of(thread), thread, of[teams.leader_of(thread)]);
      });
    });
  }
};

// The gradients of scale and shift, as sums over the elements that share one: see ChannelSumsKernel.
template <class X, class G>
struct RowAffineTerms {
  RowOperands<X, G> operands;
  std::int64_t extent;
  Global<Compute<X>> scale_grad;  // the address of each is null if no one reads it
  Global<Compute<X>> shift_grad;

  using Number = Compute<X>;
  static constexpr bool centres = false;
  static constexpr int groups_at_once = 1;
  static constexpr int blocks_at_once = 3;

  struct Of {};

  template <int own, class CentreOf>
  PLEXAURA_DEVICE OfChannels<Of, own> of_channels(std::int64_t, const CentreOf&) const {
    return {};
  }
  template <int width>
  PLEXAURA_DEVICE typename RowOperands<X, G>::template Read<width> read(std::int64_t place) const {
    return operands.template read<width>(place);
  }
  template <int width, class Numbers, class Read>
  PLEXAURA_DEVICE Addends<Number, width> addends(std::int64_t place, const Numbers&, const Read& read) const {
    const std::int64_t row = quotient(place, extent);
    const Number mean = operands.mean_of(row);
    const Number inverse = operands.inverse[row];
    Addends<Number, width> added;
    for (int k = 0; k < width; ++k) {
      added.value[k] = widen(read.grad[k]);
      added.factor[k] = (Number(widen(read.x[k])) - mean) * inverse;
    }
    return added;
  }
  PLEXAURA_DEVICE TwoSums of_split(std::int64_t, const TwoSums& sums, Number, double) const { return sums; }

  PLEXAURA_DEVICE void finish(std::int64_t c, const TwoSums& sum) const {
    if (scale_grad) scale_grad[c] = static_cast<Number>(sum.second);
    if (shift_grad) shift_grad[c] = static_cast<Number>(sum.first);
  }
};

namespace {

// Returns the elements as channels that each have an element of the scale. No group crosses the end of a row.
Channels channels_of(const RowNormShape& shape, DType x, DType grad) {
  const TensorType type{size_of(x) < size_of(grad) ? x : grad,
                        {shape.rows / shape.groups, shape.channels(), shape.run}};
  return {type, false, shape.extent};
}

// The sums are first, since the gradient by x may take the memory of an operand.
template <class X, class G>
void differentiate_rows(const Call& call, const RowNormValues<View>& of, const FusedRowNorm& norm) {
  using R = Compute<X>;
  const RowNormShape shape = shape_of(of, of.grad);
  const bool casts = norm.casts_result;
  const RowOperands<X, G> operands{of.grad.in<G>(), of.x.in<X>(), in_if<R>(of.mean), of.inverse.in<R>()};
  const RowAffineTerms<X, G> sums{operands, shape.extent, out_if<R>(of.scale_grad), out_if<R>(of.shift_grad)};
  if (sums.scale_grad || sums.shift_grad)
    enqueue_channel_sums<std::conditional_t<sizeof(X) < sizeof(G), X, G>>(
        call, channels_of(shape, of.x.dtype(), of.grad.dtype()), sums);
  dispatch_width<elements_at_once<X, G>>(shape, [&]<int width>(Width<width>) {
    const RowTeams teams(shape.rows, shape.extent, width);
    enqueue(
        call, teams.blocks(),
        RowNormGradKernel<X, G, width>{teams, operands, scale_of<R>(shape, of.scale), of.root.in<R>(),
                                       in_if<R>(of.addend), out_if<X>(casts ? of.narrow_result : of.result),
                                       casts ? out_if<R>(of.result) : Global<R>(), norm.of.centres});
  });
}

}  // namespace

std::size_t row_norm_workspace(const FusedRowNorm& norm, const std::vector<TensorType>& inputs,
                               const std::vector<TensorType>& outputs) {
  if (!norm.of.scale_grad && !norm.of.shift_grad) return 0;
  const auto views_of = [](const std::vector<TensorType>& types) {
    std::vector<View> views;
    for (const TensorType& type : types) views.push_back({nullptr, &type});
    return views;
  };
  const RowNormValues<View> of(norm, views_of(inputs), views_of(outputs));
  return ChannelSums::bytes(channels_of(shape_of(of, of.grad), of.x.dtype(), of.grad.dtype()));
}

void enqueue_row_norm_grad(const Call& call, const FusedRowNorm& norm) {
  const RowNormValues<View> of(norm, call.inputs, call.outputs);
  dispatch_two(of.x.dtype(), of.grad.dtype(),
               [&]<class X, class G>(std::type_identity<X>, std::type_identity<G>) {
                 differentiate_rows<X, G>(call, of, norm);
               });
}

}  // namespace plexaura::cuda
