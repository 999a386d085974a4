#include <algorithm>
#include <array>
#include <limits>

#include "backends/cpu/fast/function_kernel.h"
#include "backends/cpu/fast/labels/label_loops.h"
#include "backends/cpu/fast/parallel.h"
#include "backends/cpu/fast/sources.h"
#include "backends/regions/region_match.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/labels.h"

namespace plexaura::fast {

namespace {

constexpr double nanoseconds_per_exponential = 0.5;
constexpr double nanoseconds_per_element = 0.1;
// The number of groups of samples whose losses are added up separately. It is fixed, so that the sum does not
// depend on the number of threads.
constexpr std::int64_t groups = 64;

struct Logits {
  std::int64_t samples;
  std::int64_t classes;

  double row_cost(double nanoseconds) const { return 10 + nanoseconds * static_cast<double>(classes); }
};

const std::int64_t* labels_at(Address address) { return reinterpret_cast<const std::int64_t*>(address); }

bool is_class(std::int64_t label, const Logits& of) { return label >= 0 && label < of.classes; }

template <class T>
void cross_entropy(const Logits& of, const CrossEntropyOptions& options, const Binding& at) {
  const Reduction reduction = options.reduction;
  const T* logits = elements<T>(at.inputs[0]);
  const std::int64_t* labels = labels_at(at.inputs[1]);
  T* loss = elements<T>(at.outputs[0]);
  T* probabilities = elements<T>(at.outputs[1]);
  const bool keeps_rows = reduction == Reduction::none && loss != nullptr;
  std::array<double, groups> totals{};
  const double samples_of_group = static_cast<double>(of.samples) / groups;
  parallel_pieces(groups, samples_of_group * of.row_cost(2 * nanoseconds_per_exponential),
                  [&](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t group = begin; group < end; ++group)
                      for (std::int64_t n = of.samples * group / groups;
                           n < of.samples * (group + 1) / groups; ++n) {
                        T* row = probabilities == nullptr ? nullptr : probabilities + n * of.classes;
                        const double known = loss_of_row(logits + n * of.classes, of.classes, labels[n], row);
                        const double own = options.ignore == labels[n] ? 0 : known;
                        if (keeps_rows) loss[n] = static_cast<T>(own);
                        totals[static_cast<std::size_t>(group)] += own;
                      }
                  });
  if (reduction == Reduction::none || loss == nullptr) return;
  double total = 0;
  for (const double of_group : totals) total += of_group;
  if (reduction == Reduction::mean) total /= static_cast<double>(of.samples);
  *loss = static_cast<T>(total);
}

template <class T>
void cross_entropy_grad(const Logits& of, const CrossEntropyOptions& options, const Binding& at) {
  const Reduction reduction = options.reduction;
  const std::int64_t* labels = labels_at(at.inputs[1]);
  const T* probabilities = elements<T>(at.inputs[2]);
  const T* diff_loss = elements<T>(at.inputs[3]);
  T* diff_logits = elements<T>(at.outputs[0]);
  const T weight = reduction == Reduction::mean ? T(1) / static_cast<T>(of.samples) : T(1);
  parallel_pieces(of.samples, of.row_cost(nanoseconds_per_element),
                  [&](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t n = begin; n < end; ++n) {
                      T* row = diff_logits + n * of.classes;
                      const T of_loss = diff_loss[reduction == Reduction::none ? n : 0];
                      if (of_loss == 0 || options.ignore == labels[n]) {
                        std::fill_n(row, of.classes, T(0));
                        continue;
                      }
                      const bool known = is_class(labels[n], of);
                      loss_grad_of_row(probabilities + n * of.classes, of.classes, known ? labels[n] : 0,
                                       known ? weight * of_loss : std::numeric_limits<T>::quiet_NaN(), row);
                    }
                  });
}

void count_correct(const Logits& of, std::int64_t k, const Binding& at) {
  const float* logits = floats(at.inputs[0]);
  const std::int64_t* labels = labels_at(at.inputs[1]);
  std::int64_t correct = 0;
  for (std::int64_t n = 0; n < of.samples; ++n) {
    if (!is_class(labels[n], of)) continue;
    const float* row = logits + n * of.classes;
    const float own = row[labels[n]];
    if (own == own && classes_before(row, of.classes, labels[n]) < k) ++correct;
  }
  *floats(at.outputs[0]) = static_cast<float>(correct);
}

void write_one_hot(const Logits& of, const Binding& at) {
  const std::int64_t* labels = labels_at(at.inputs[0]);
  float* dst = floats(at.outputs[0]);
  std::fill_n(dst, of.samples * of.classes, 0.F);
  for (std::int64_t n = 0; n < of.samples; ++n)
    if (is_class(labels[n], of)) dst[n * of.classes + labels[n]] = 1.F;
}

constexpr auto loss = "softmax_cross_entropy";
constexpr auto loss_grad = "softmax_cross_entropy_grad";
constexpr auto hits = "top_k_correct";
constexpr auto one_hot_rows = "one_hot";

bool is_known(const std::string& kind) {
  constexpr std::array kinds{loss, loss_grad, hits, one_hot_rows};
  return std::ranges::find(kinds, kind) != kinds.end();
}

// Returns the type of the operand that is a matrix of samples and classes.
const TensorType& matrix_of(const RegionQuery& query) {
  const bool is_result = query.region.kind == loss_grad || query.region.kind == one_hot_rows;
  return query.type(is_result ? query.region.outputs[0] : query.region.inputs[0]);
}

bool is_fit(const RegionQuery& query) {
  if (!is_known(query.region.kind)) return false;
  const TensorType& matrix = matrix_of(query);
  const bool is_double =
      matrix.dtype == DType::float64 && (query.region.kind == loss || query.region.kind == loss_grad);
  return (is_double || matrix.dtype == DType::float32) && matrix.shape.rank() > 0 &&
         matrix.shape.elements() > 0;
}

std::shared_ptr<const Kernel> make_for(const RegionQuery& query) {
  const Shape& matrix = matrix_of(query).shape;
  const std::int64_t classes = matrix[matrix.rank() - 1];
  const Logits of{matrix.elements() / classes, classes};
  const std::string& kind = query.region.kind;
  const bool is_double = matrix_of(query).dtype == DType::float64;
  if (kind == loss)
    return make_kernel([of, run = is_double ? cross_entropy<double> : cross_entropy<float>,
                        options = op_cast<SoftmaxCrossEntropy>(query.op()).options()](const Binding& at) {
      run(of, options, at);
    });
  if (kind == loss_grad)
    return make_kernel([of, run = is_double ? cross_entropy_grad<double> : cross_entropy_grad<float>,
                        options = op_cast<SoftmaxCrossEntropyGrad>(query.op()).options()](const Binding& at) {
      run(of, options, at);
    });
  if (kind == hits)
    return make_kernel([of, k = op_cast<TopKCorrect>(query.op()).options().k](const Binding& at) {
      count_correct(of, k, at);
    });
  return make_kernel([of](const Binding& at) { write_one_hot(of, at); });
}

class ClassSource final : public KernelSource {
 public:
  std::vector<Candidate> propose(const RegionQuery& query) const override {
    if (!is_fit(query)) return {};
    Candidate candidate = row_major_candidate(query);
    if (query.region.kind == loss_grad) candidate.reads = {false, true, true, true};
    candidate.make = [query] { return make_for(query); };
    return {std::move(candidate)};
  }
};

}  // namespace

std::unique_ptr<const KernelSource> make_class_source() { return std::make_unique<ClassSource>(); }

}  // namespace plexaura::fast
