#include <algorithm>
#include <memory>
#include <utility>

#include "backends/cpu/fast/function_kernel.h"
#include "backends/cpu/fast/parallel.h"
#include "backends/cpu/fast/row_norm/row_norm_loops.h"
#include "backends/cpu/fast/sources.h"
#include "backends/regions/row_norm_regions.h"

namespace plexaura::fast {

namespace {

constexpr double nanoseconds_per_element = 0.5;
constexpr std::int64_t lanes_of_sums = 16;

// Hands out the operands of a region in order.
template <class T>
class Operands {
 public:
  explicit Operands(const std::vector<Address>& addresses) : addresses_(addresses) {}
  T* next(bool exists = true) { return exists ? elements<T>(addresses_[place_++]) : nullptr; }

 private:
  const std::vector<Address>& addresses_;
  std::size_t place_ = 0;
};

struct RowNorm {
  RowNormRegion region;
  RowNormShape shape;
  NormRows rows;

  double nanoseconds_per_row() const { return nanoseconds_per_element * static_cast<double>(shape.extent); }
  // The number of rows that have their sums in common. It does not depend on the number of threads.
  std::int64_t rows_of_sum() const {
    return rows.share_sums() ? std::clamp<std::int64_t>(shape.rows / 16, 1, 32) : 1;
  }
  // The number of sums for each element of the scale.
  std::int64_t sums() const {
    return rows.share_sums() ? (shape.rows + rows_of_sum() - 1) / rows_of_sum() : shape.rows / shape.groups;
  }
  std::size_t elements_of_sums() const { return static_cast<std::size_t>(sums() * shape.channels()); }
};

RowNorm row_norm_of(const RegionQuery& query, const RowNormRegion& region) {
  const std::size_t scale = 1;
  const std::vector<Value>& inputs = query.region.inputs;
  const Value root = region.backward ? inputs[region.scales ? 4 : 3] : query.region.outputs.back();
  const TensorType& result = query.type(region.backward ? inputs[0] : query.region.outputs[0]);
  const RowNormShape shape =
      *row_norm_shape(result, query.type(root), region.scales ? &query.type(inputs[scale]) : nullptr);
  return {region, shape, {shape.extent, shape.run, shape.groups, region.centres}};
}

template <class T>
void run_forward(const RowNorm& norm, const Binding& binding) {
  Operands<T> inputs(binding.inputs);
  Operands<T> outputs(binding.outputs);
  NormForward<T> at{};
  at.x = inputs.next();
  at.scale = inputs.next(norm.region.scales);
  at.shift = inputs.next(norm.region.shifts);
  at.epsilon = *inputs.next();
  at.result = outputs.next();
  at.normal = outputs.next(norm.region.scales);
  at.centred = outputs.next(norm.region.centres);
  at.inverse = outputs.next();
  at.root = outputs.next();
  parallel_pieces(norm.shape.rows, norm.nanoseconds_per_row(),
                  [&](std::int64_t begin, std::int64_t end) { normalise_rows(norm.rows, at, begin, end); });
}

template <class T>
void add_sums(const RowNorm& norm, const T* sums, T* result) {
  const std::int64_t channels = norm.shape.channels();
  parallel_pieces(channels, nanoseconds_per_element * static_cast<double>(norm.sums()), lanes_of_sums,
                  [&](std::int64_t begin, std::int64_t end) {
                    add_norm_sums(sums, norm.sums(), channels, begin, end, result);
                  });
}

template <class T>
void run_backward(const RowNorm& norm, const Binding& binding) {
  Operands<T> inputs(binding.inputs);
  Operands<T> outputs(binding.outputs);
  NormBackward<T> at{};
  at.grad = inputs.next();
  at.scale = inputs.next(norm.region.scales);
  at.centred = inputs.next();
  at.inverse = inputs.next();
  at.root = inputs.next();
  inputs.next(norm.region.scale_grad);
  at.addend = inputs.next(norm.region.adds);
  at.result = outputs.next();
  T* scale_grad = outputs.next(norm.region.scale_grad);
  T* shift_grad = outputs.next(norm.region.shift_grad);
  T* sums = elements<T>(binding.workspace);
  const NormPartialSums<T> partial{scale_grad == nullptr ? nullptr : sums,
                                   shift_grad == nullptr ? nullptr : sums + norm.elements_of_sums()};
  const std::int64_t step = norm.rows_of_sum();
  const std::int64_t pieces = (norm.shape.rows + step - 1) / step;
  parallel_pieces(pieces, norm.nanoseconds_per_row() * static_cast<double>(step),
                  [&](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t piece = begin; piece < end; ++piece) {
                      const std::int64_t place = norm.rows.share_sums() ? piece * norm.rows.extent : 0;
                      normalise_rows_grad(norm.rows, at, piece * step,
                                          std::min(norm.shape.rows, (piece + 1) * step),
                                          {partial.scale == nullptr ? nullptr : partial.scale + place,
                                           partial.shift == nullptr ? nullptr : partial.shift + place});
                    }
                  });
  if (scale_grad != nullptr) add_sums(norm, partial.scale, scale_grad);
  if (shift_grad != nullptr) add_sums(norm, partial.shift, shift_grad);
}

template <class T>
std::shared_ptr<const Kernel> make_row_norm(const RowNorm& norm) {
  if (!norm.region.backward)
    return make_kernel([norm](const Binding& binding) { run_forward<T>(norm, binding); });
  return make_kernel([norm](const Binding& binding) { run_backward<T>(norm, binding); },
                     2 * norm.elements_of_sums() * sizeof(T));
}

// The number of inputs that are operands of the kernel, and not constants.
std::size_t operands_of(const RowNormRegion& region) {
  const auto count = [](bool exists) { return exists ? std::size_t{1} : 0; };
  if (!region.backward) return 2 + count(region.scales) + count(region.shifts);
  return 4 + count(region.scales) + count(region.scale_grad) + count(region.adds);
}

class RowNormSource final : public KernelSource {
 public:
  std::vector<Region> match(const Graph& graph, NodeId last, const Uses& uses) const override {
    return match_row_norm(graph, last, uses);
  }

  std::vector<Candidate> propose(const RegionQuery& query) const override {
    if (query.region.nodes.size() == 1) return {};
    const auto region = row_norm_region(query.region.kind);
    const bool is_double = is_dense(query, DType::float64);
    if (!region || (!is_double && !is_dense_float32(query))) return {};
    Candidate candidate = row_major_candidate(query);
    candidate.reads.assign(query.region.inputs.size(), false);
    std::fill_n(candidate.reads.begin(), operands_of(*region), true);
    candidate.in_place = {{0, 0}};
    if (region->backward) {
      candidate.in_place.emplace_back(0, region->scales ? 2 : 1);
      // The kernel multiplies x - mean by 1 / root again.
      if (region->scale_grad) candidate.reads[region->scales ? 5 : 4] = false;
      if (region->adds) candidate.in_place.emplace_back(0, operands_of(*region) - 1);
    }
    candidate.make = [norm = row_norm_of(query, *region), is_double] {
      return is_double ? make_row_norm<double>(norm) : make_row_norm<float>(norm);
    };
    return {std::move(candidate)};
  }
};

}  // namespace

std::unique_ptr<const KernelSource> make_row_norm_source() { return std::make_unique<RowNormSource>(); }

}  // namespace plexaura::fast
