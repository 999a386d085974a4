#include "distributed/compression/power_sgd.h"

#include <algorithm>
#include <fmt/format.h>

#include "core/base/error.h"
#include "core/base/fnv.h"
#include "core/base/splitmix.h"
#include "core/tensor/layout.h"

namespace plexaura {
namespace {

constexpr std::string_view right_prefix = "right.";

TensorType type_of(const Placement::Entry& entry) { return {DType::float32, entry.type.shape}; }

Layout logical(const Placement::Entry& entry) { return Layout::row_major(entry.type.shape.rank()); }

// from_arena() copies a parameter from the arena's layout to row-major. to_arena() copies it back.
void from_arena(const Placement::Entry& entry, std::span<const float> arena, std::span<float> values) {
  reorder(std::as_bytes(arena).data(), entry.layout, std::as_writable_bytes(values).data(), logical(entry),
          type_of(entry));
}

void to_arena(const Placement::Entry& entry, std::span<const float> values, std::span<float> arena) {
  reorder(std::as_bytes(values).data(), logical(entry), std::as_writable_bytes(arena).data(), entry.layout,
          type_of(entry));
}

// Fills the vector with pseudo-random numbers from -1 to 1. They depend only on `seed`, so they are the same
// on all ranks and in all runs.
void draw(std::span<float> vector, std::uint64_t seed) {
  for (float& value : vector)
    value = static_cast<float>(static_cast<std::int64_t>(splitmix_scatter(seed += splitmix_step))) * 0x1p-63F;
}

// Scales the vectors with which a step begins to length 1. Replaces a vector of zeros by a random one.
void refresh(const Matrix& vectors, std::string_view name) {
  for (std::int64_t c = 0; c < vectors.rows(); ++c) {
    const std::span<float> vector = vectors.row(c);
    if (std::ranges::count(vector, 0.0F) == vectors.columns)
      draw(vector, splitmix_scatter(fnv(name) + static_cast<std::uint64_t>(c)));
    normalise(vector);
  }
}

}  // namespace

void PowerSgd::begin(const Placement& placement, std::span<const Bucket> buckets) {
  buckets_.clear();
  bool any = false;
  for (const Bucket& bucket : buckets) {
    Parameters& parameters = buckets_.emplace_back();
    for (const Placement::Entry& entry : placement.entries)
      if (entry.role == ParameterRole::trainable && entry.offset >= bucket.offset &&
          entry.offset < bucket.offset + bucket.count)
        parameters.push_back(make_parameter(entry, bucket));
    any = any || std::ranges::any_of(parameters, [](const Parameter& made) { return made.columns > 0; });
  }
  if (!any)
    throw UserError(
        fmt::format("the compression powersgd finds no parameter of which {} vectors would be smaller: make "
                    "distributed.compression_rank smaller, or set distributed.compression to none",
                    2 * vectors_));
}

PowerSgd::Parameter PowerSgd::make_parameter(const Placement::Entry& entry, const Bucket& bucket) const {
  Parameter made{.entry = &entry, .begin = static_cast<std::size_t>(entry.offset - bucket.offset)};
  const Shape& shape = entry.type.shape;
  if (shape.rank() < 2 || shape.elements() == 0) return made;
  const std::int64_t rows = shape.extents()[0];
  const std::int64_t columns = shape.elements() / rows;
  if (vectors_ * (rows + columns) >= rows * columns) return made;
  made.columns = columns;
  made.values.resize(static_cast<std::size_t>(rows * columns));
  made.left.resize(static_cast<std::size_t>(vectors_ * rows));
  made.right.resize(static_cast<std::size_t>(vectors_ * columns));
  return made;
}

void PowerSgd::exchange(std::size_t bucket, std::span<float> owed, std::span<float> sums,
                        std::string_view what) {
  Parameters& parameters = buckets_[bucket];
  std::ranges::fill(sums, 0.0F);
  sum_lefts(parameters, owed, sums, what);
  sum_rights(parameters, owed, what);
  for (Parameter& parameter : parameters) {
    if (parameter.columns == 0) continue;
    std::ranges::fill(parameter.values, 0.0F);
    add_product(parameter.matrix(), 1, parameter.lefts(), parameter.rights());
    to_arena(*parameter.entry, parameter.values, parameter.in(sums));
  }
}

std::vector<Crossing> PowerSgd::crossings(std::size_t bucket, std::int64_t, int) const {
  Crossing lefts{Crossing::Call::sum};
  Crossing rights{Crossing::Call::sum};
  for (const Parameter& parameter : buckets_[bucket]) {
    const auto count = parameter.columns > 0 ? static_cast<std::int64_t>(parameter.left.size())
                                             : static_cast<std::int64_t>(parameter.entry->count);
    lefts.bytes += count * static_cast<std::int64_t>(sizeof(float));
    rights.bytes += static_cast<std::int64_t>(parameter.right.size() * sizeof(float));
  }
  if (rights.bytes == 0) return {lefts};
  return {lefts, rights};
}

// Sums the left vectors, and the parameters that are not compressed.
void PowerSgd::sum_lefts(Parameters& parameters, std::span<float> owed, std::span<float> sums,
                         std::string_view what) {
  pack_.clear();
  for (Parameter& parameter : parameters) {
    std::span<float> crossing = parameter.in(owed);
    if (parameter.columns > 0) {
      from_arena(*parameter.entry, crossing, parameter.values);
      refresh(parameter.rights(), parameter.entry->name);
      multiply(parameter.matrix(), parameter.rights(), parameter.lefts());
      crossing = parameter.left;
    }
    pack_.insert(pack_.end(), crossing.begin(), crossing.end());
  }
  sum_pack(what);
  auto next = pack_.cbegin();
  for (Parameter& parameter : parameters) {
    const std::span<float> to = parameter.columns > 0 ? std::span(parameter.left) : parameter.in(sums);
    std::copy_n(next, to.size(), to.begin());
    next += static_cast<std::ptrdiff_t>(to.size());
    if (parameter.columns > 0)
      orthonormalise(parameter.lefts());
    else
      std::ranges::fill(parameter.in(owed), 0.0F);
  }
}

// Sums the right vectors. Subtracts this rank's own part of the product from what it owes.
void PowerSgd::sum_rights(Parameters& parameters, std::span<float> owed, std::string_view what) {
  pack_.clear();
  for (Parameter& parameter : parameters) {
    if (parameter.columns == 0) continue;
    multiply_transposed(parameter.matrix(), parameter.lefts(), parameter.rights());
    add_product(parameter.matrix(), -1, parameter.lefts(), parameter.rights());
    to_arena(*parameter.entry, parameter.values, parameter.in(owed));
    pack_.insert(pack_.end(), parameter.right.begin(), parameter.right.end());
  }
  if (pack_.empty()) return;
  sum_pack(what);
  auto next = pack_.cbegin();
  for (Parameter& parameter : parameters) {
    std::copy_n(next, parameter.right.size(), parameter.right.begin());
    next += static_cast<std::ptrdiff_t>(parameter.right.size());
  }
}

void PowerSgd::sum_pack(std::string_view what) {
  ranks_.sum(DType::float32, std::as_writable_bytes(std::span(pack_)).data(),
             static_cast<std::int64_t>(pack_.size()), what);
}

void PowerSgd::keep(std::vector<StrategyState>& state) const {
  for (const Parameters& parameters : buckets_)
    for (const Parameter& parameter : parameters)
      if (parameter.columns > 0)
        state.push_back({fmt::format("{}{}", right_prefix, parameter.entry->name),
                         Tensor::of<float>(Shape{vectors_, parameter.columns}, parameter.right), true});
}

void PowerSgd::take(const StrategyState& part) {
  for (Parameters& parameters : buckets_)
    for (Parameter& parameter : parameters)
      if (parameter.columns > 0 && part.name == fmt::format("{}{}", right_prefix, parameter.entry->name) &&
          part.value.type() == TensorType{DType::float32, Shape{vectors_, parameter.columns}})
        std::ranges::copy(part.value.as<float>(), parameter.right.begin());
}

}  // namespace plexaura
