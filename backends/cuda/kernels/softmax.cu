// Softmax and cross-entropy. A team of threads computes one row of a softmax along the last axis, and one thread
// a line along another axis. One block computes the cross-entropy of one sample.

#include <limits>

#include "backends/cuda/kernels/call.h"
#include "backends/cuda/kernels/element.h"
#include "backends/cuda/kernels/joins.h"
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/row_sum.h"
#include "backends/cuda/kernels/row_teams.h"
#include "backends/cuda/kernels/several.h"
#include "backends/cuda/kernels/strides.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/softmax.h"

namespace plexaura::cuda {

// A line of `count` elements, with a distance of `step` elements in memory.
template <class T>
struct Line {
  const Global<const T>& src;
  std::int64_t first;
  std::int64_t step;
  std::int64_t count;

  PLEXAURA_DEVICE double at(std::int64_t i) const { return widen(src[first + i * step]); }
  PLEXAURA_DEVICE double largest() const {
    double largest = -std::numeric_limits<double>::infinity();
    for (std::int64_t i = 0; i < count; ++i) largest = std::fmax(largest, at(i));
    return largest;
  }
  PLEXAURA_DEVICE double total(double largest) const {
    double total = 0;
    for (std::int64_t i = 0; i < count; ++i) total += Math::exp(at(i) - largest);
    return total;
  }
};

// The sum of the exponentials of numbers, each less the largest of them. NaN is not the largest, but makes the
// sum NaN.
template <class R>
struct Exponentials {
  R largest;
  R total;

  PLEXAURA_DEVICE static Exponentials of_none() { return {-std::numeric_limits<R>::infinity(), 0}; }

  // Returns the factor of a sum that is less `from` and becomes less `to`. It is 1 also if both are infinite.
  PLEXAURA_DEVICE static R moved(R from, R to) { return from == to ? R(1) : Math::exp(from - to); }

  template <class T, int count>
  PLEXAURA_DEVICE void add(const Several<T, count>& x) {
    R next = largest;
    for (int k = 0; k < count; ++k) next = std::fmax(next, static_cast<R>(widen(x[k])));
    total *= moved(largest, next);
    largest = next;
    // Numbers of -infinity add nothing to a sum that other numbers may follow.
    const R less = largest == of_none().largest ? R(0) : largest;
    for (int k = 0; k < count; ++k) total += Math::exp(static_cast<R>(widen(x[k])) - less);
  }
  PLEXAURA_DEVICE void add(const Exponentials& other) {
    const R next = std::fmax(largest, other.largest);
    total = total * moved(largest, next) + other.total * moved(other.largest, next);
    largest = next;
  }
};

// Exponentials of the numbers of one thread, which also know by how much rounding has made the total too large. So the
// total of many small numbers is as exact as that of a few.
template <class R>
struct ExactExponentials {
  Exponentials<R> sum = Exponentials<R>::of_none();
  R excess = 0;

  PLEXAURA_DEVICE void add(R x) {
    const R next = std::fmax(sum.largest, x);
    const R factor = Exponentials<R>::moved(sum.largest, next);
    sum.total *= factor;
    excess *= factor;
    sum.largest = next;
    const R less = next == Exponentials<R>::of_none().largest ? R(0) : next;
    const R addend = Math::exp(x - less) - excess;
    const R total = sum.total + addend;
    excess = (total - sum.total) - addend;
    sum.total = total;
  }
};

// Computes results from the Exponentials of their line.
template <class T>
struct OfLine {
  Compute<T> largest;
  Compute<T> by;  // what the exponentials are multiplied by, or what is subtracted from the logarithms
  bool logarithm;

  PLEXAURA_DEVICE OfLine(const Exponentials<Compute<T>>& of, bool logarithm)
      : largest(of.largest), by(logarithm ? Math::log(of.total) : 1 / of.total), logarithm(logarithm) {}

  template <int count>
  PLEXAURA_DEVICE Several<T, count> operator()(const Several<T, count>& x) const {
    Several<T, count> y;
    for (int k = 0; k < count; ++k) {
      const Compute<T> less = widen(x[k]) - largest;
      y[k] = narrow<T>(logarithm ? less - by : Math::exp(less) * by);
    }
    return y;
  }
};

// Lines whose elements lie `step` apart. Neighbouring threads compute neighbouring lines.
template <class T>
struct SoftmaxLinesKernel {
  Global<const T> src;
  Global<T> dst;
  std::int64_t lines;
  std::int64_t step;
  std::int64_t classes;
  bool logarithm;

  PLEXAURA_DEVICE void operator()(Block& block) const {
    block.each_item(lines, [&](std::int64_t line) {
      const std::int64_t first = line / step * step * classes + line % step;
      const auto at = [&](std::int64_t i) { return src.template several<1>(first + i * step); };
      ExactExponentials<Compute<T>> all;
      for (std::int64_t c = 0; c < classes; ++c) all.add(widen(at(c)[0]));
      const OfLine<T> of(all.sum, logarithm);
      for (std::int64_t c = 0; c < classes; ++c) dst.set_several(first + c * step, of(at(c)));
    });
  }
};

// Rows of consecutive elements, each read by a team of threads, `width` elements at once.
template <class T, int width>
struct SoftmaxRowsKernel {
  Global<const T> src;
  Global<T> dst;
  RowTeams teams;
  bool logarithm;

  using Sum = Exponentials<Compute<T>>;
  static constexpr int groups_at_once = 2;

  PLEXAURA_DEVICE void operator()(Block& block) const {
    PLEXAURA_SHARED(block, Sum, sums, threads);
    const auto read = [&](std::int64_t place) { return src.template several<width>(place); };
    teams.each_round(block, [&](const auto& row_of) {
      block.each_thread([&](int thread) {
        Sum sum = Sum::of_none();
        teams.template each_group<width, groups_at_once>(
            row_of(thread), thread, read, [&](std::int64_t, const Several<T, width>& x) { sum.add(x); });
        sums[thread] = sum;
      });
      teams.template join<Sum>(block, sums);
      block.each_thread([&](int thread) {
        const OfLine<T> of(sums[teams.leader_of(thread)], logarithm);
        teams.template each_group<width, groups_at_once>(
            row_of(thread), thread, read,
            [&](std::int64_t place, const Several<T, width>& x) { dst.set_several(place, of(x)); });
      });
    });
  }
};

// The label whose samples do not count in the loss, if there is one.
struct Ignored {
  bool any;
  std::int64_t label;

  PLEXAURA_DEVICE bool is(std::int64_t of_sample) const { return any && of_sample == label; }
};

// Computes one sample in each block.
template <class T>
struct CrossEntropyKernel {
  Global<const T> logits;
  Global<const std::int64_t> labels;
  Global<T> loss;
  Global<T> probabilities;
  std::int64_t samples;
  std::int64_t classes;
  Reduction reduction;
  Ignored ignored;
  RowSum sum;

  // The numbers of a sample that the threads of a block share.
  struct Of {
    double largest;
    double total;
  };

  PLEXAURA_DEVICE double loss_of(std::int64_t sample, const Line<T>& line, const Of& of) const {
    const std::int64_t label = labels[sample];
    if (ignored.is(label)) return 0;
    if (label < 0 || label >= classes) return std::numeric_limits<double>::quiet_NaN();
    return Math::log(of.total) - (line.at(label) - of.largest);
  }

  // Writes the largest logit and the sum of the exponentials to of[0]. One thread adds them up in the order
  // of the classes.
  template <class Parts, class Shared>
  PLEXAURA_DEVICE void sum_exponentials(Block& block, Parts& parts, Shared& of, const Line<T>& line) const {
    block.each_thread([&](int thread) {
      double largest = -std::numeric_limits<double>::infinity();
      for (std::int64_t c = thread; c < classes; c += threads) largest = std::fmax(largest, line.at(c));
      parts[thread] = largest;
    });
    join_all<double>(block, parts, [](double a, double b) { return std::fmax(a, b); });
    block.each_thread([&](int thread) {
      if (thread == 0) of[0] = Of{parts[0], 0};
    });
    for (std::int64_t first = 0; first < classes; first += threads) {
      block.each_thread([&](int thread) {
        if (first + thread < classes)
          parts[thread] = Math::exp(line.at(first + thread) - static_cast<Of>(of[0]).largest);
      });
      block.each_thread([&](int thread) {
        if (thread > 0) return;
        Of sums = of[0];
        for (int i = 0; i < threads && first + i < classes; ++i) sums.total += parts[i];
        of[0] = sums;
      });
    }
  }

  PLEXAURA_DEVICE void operator()(Block& block) const {
    PLEXAURA_SHARED(block, double, parts, threads);
    PLEXAURA_SHARED(block, Of, of, 1);
    PLEXAURA_SHARED(block, bool, last, 1);
    const bool apart = reduction == Reduction::none;
    for (std::int64_t sample = block.index(); sample < samples; sample += block.blocks()) {
      const Line<T> line{logits, sample * classes, 1, classes};
      sum_exponentials(block, parts, of, line);
      block.each_thread([&](int thread) {
        const Of sums = of[0];
        for (std::int64_t c = thread; probabilities && c < classes; c += threads)
          probabilities[line.first + c] = narrow<T>(Math::exp(line.at(c) - sums.largest) / sums.total);
        if (thread > 0 || !loss) return;
        const double of_sample = loss_of(sample, line, sums);
        if (apart)
          loss[sample] = narrow<T>(of_sample);
        else
          sum.rows[sample] = of_sample;
      });
    }
    if (apart || !loss) return;
    sum.add_up(block, parts, last, [&](double of_all) {
      const bool divides = reduction == Reduction::mean && samples > 0;
      loss[0] = narrow<T>(of_all / (divides ? static_cast<double>(samples) : 1.0));
    });
  }
};

template <class T>
struct CrossEntropyGradKernel {
  Global<const std::int64_t> labels;
  Global<const T> probabilities;
  Global<const T> diff_loss;
  Global<T> diff_logits;
  std::int64_t classes;
  double weight;
  bool apart;
  Ignored ignored;

  PLEXAURA_DEVICE void operator()(Block& block) const {
    block.each_item(diff_logits.count(), [&](std::int64_t i) {
      const std::int64_t sample = i / classes;
      const std::int64_t label = labels[sample];
      const double of_loss = widen(diff_loss[apart ? sample : 0]);
      const bool known = label >= 0 && label < classes;
      const double scale = known ? weight * of_loss : std::numeric_limits<double>::quiet_NaN();
      const double excess = widen(probabilities[i]) - (i % classes == label ? 1.0 : 0.0);
      diff_logits[i] = narrow<T>(of_loss == 0 || ignored.is(label) ? 0.0 : scale * excess);
    });
  }
};

namespace {

Ignored ignored_of(const CrossEntropyOptions& options) {
  return {options.ignore.has_value(), options.ignore.value_or(0)};
}

template <class T, int width>
void softmax_of_rows(const Call& call, std::int64_t rows, std::int64_t classes, bool logarithm) {
  const RowTeams teams(rows, classes, width);
  enqueue(call, teams.blocks(),
          SoftmaxRowsKernel<T, width>{call.inputs[0].in<T>(), call.outputs[0].out<T>(), teams, logarithm});
}

void softmax(const Call& call, bool logarithm) {
  const View& result = call.outputs[0];
  const Shape& shape = result.shape();
  if (shape.elements() == 0) return;
  const std::int64_t axis = normalise_axis(op_cast<SoftmaxOp>(call.op).options().axis, shape.rank());
  const std::int64_t lines = shape.elements() / shape[axis];
  const std::int64_t step = stride_of(shape, axis);
  dispatch_floating(result.dtype(), [&]<class T>(std::type_identity<T>) {
    constexpr int width = elements_at_once<T>;
    if (step > 1)
      enqueue(call, blocks_for(lines),
              SoftmaxLinesKernel<T>{call.inputs[0].in<T>(), result.out<T>(), lines, step, shape[axis],
                                    logarithm});
    else if (shape[axis] % width == 0)
      softmax_of_rows<T, width>(call, lines, shape[axis], logarithm);
    else
      softmax_of_rows<T, 1>(call, lines, shape[axis], logarithm);
  });
}

}  // namespace

void cuda_softmax(const Call& call) { softmax(call, false); }
void cuda_log_softmax(const Call& call) { softmax(call, true); }

void cuda_softmax_cross_entropy(const Call& call) {
  const Shape& logits = call.inputs[0].shape();
  const CrossEntropyOptions& options = op_cast<SoftmaxCrossEntropy>(call.op).options();
  dispatch_floating(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    enqueue(call, blocks_of_rows(logits[0]),
            CrossEntropyKernel<T>{call.inputs[0].in<T>(), call.inputs[1].in<std::int64_t>(),
                                  call.outputs[0].out<T>(), call.outputs[1].out<T>(), logits[0], logits[1],
                                  options.reduction, ignored_of(options), row_sum_of(call, logits[0])});
  });
}

void cuda_softmax_cross_entropy_grad(const Call& call) {
  const View& result = call.outputs[0];
  const CrossEntropyOptions& options = op_cast<SoftmaxCrossEntropyGrad>(call.op).options();
  const auto samples = static_cast<double>(result.shape()[0]);
  dispatch_floating(result.dtype(), [&]<class T>(std::type_identity<T>) {
    enqueue(call, blocks_for(result.elements()),
            CrossEntropyGradKernel<T>{call.inputs[1].in<std::int64_t>(), call.inputs[2].in<T>(),
                                      call.inputs[3].in<T>(), result.out<T>(), result.shape()[1],
                                      options.reduction == Reduction::mean ? 1 / samples : 1.0,
                                      options.reduction == Reduction::none, ignored_of(options)});
  });
}

}  // namespace plexaura::cuda
