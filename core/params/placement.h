#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/export.h"
#include "core/graph/leaf.h"
#include "core/tensor/layout.h"

namespace plexaura {

enum class ParameterRole : std::uint8_t {
  trainable,  // has a gradient and optimizer state; updates change it
  buffer,     // running statistics, which updates change
  frozen      // no update changes it
};

// The first elements of the tail: numbers that each step stores after the gradients, and that are summed over
// ranks and micro-batches as the gradients are. The metrics of the model begin at first_metric.
enum class TailSlot : std::uint8_t { loss, samples, stop, failed, first_metric };
inline constexpr std::int64_t tail_count = 16;  // number of elements of the tail
inline constexpr std::size_t most_metrics = tail_count - static_cast<std::size_t>(TailSlot::first_metric);

constexpr TailSlot metric_slot(std::size_t index) {
  return static_cast<TailSlot>(static_cast<std::size_t>(TailSlot::first_metric) + index);
}

// The factor of the loss that keeps gradients in the range of float16: a power of 2, which the update adjusts
// on the device. If gradients are not finite, the step changes nothing but this: the scale is halved. After
// `growth_steps` good steps in a row it is doubled.
struct LossScale {
  static constexpr float least = 0x1p-24F;
  static constexpr float most = 1 << 24;
  static constexpr float growth_steps = 2000;

  float scale = 1 << 16;
  float good_steps = 0;     // steps in a row with finite gradients since the last change of the scale
  float skipped_steps = 0;  // steps skipped in all
  bool operator==(const LossScale&) const = default;
};
// The index of each member of LossScale in ArenaKind::scaling.
enum class ScalingSlot : std::uint8_t { scale, good_steps, skipped_steps };
inline constexpr std::int64_t scaling_count = 3;
constexpr ArenaSlice slice_of(ScalingSlot slot) {
  return {.arena = ArenaKind::scaling, .offset = static_cast<std::int64_t>(slot), .count = 1};
}
static_assert(sizeof(LossScale) == scaling_count * sizeof(float));

// The dtypes of the store's arenas. All are floating.
struct ArenaTypes {
  DType values = DType::float32;     // dtype of the values, of the tail, and of buffers in the gradient arena
  DType gradients = DType::float32;  // dtype of the gradients of trainable parameters
  DType states = DType::float32;
  // Dtype of a copy of the values that each update writes; empty: there is no copy.
  std::optional<DType> shadow = {};

  static ArenaTypes all(DType dtype) { return {dtype, dtype, dtype}; }
  // Weights, gradients and state in float32, and a shadow for programs that compute in `narrow`, bfloat16 or
  // float16. Gradients stay in float32, since they are added up over ranks and micro-batches; they need
  // little memory compared with activations.
  static ArenaTypes mixed(DType narrow) { return {DType::float32, DType::float32, DType::float32, narrow}; }

  // Returns the dtype in which a model computes its narrow ops: see core/compile/mixed_precision.h.
  DType precision() const { return shadow.value_or(values); }
  bool is_mixed() const { return size_of(precision()) < size_of(values); }
  // True if gradients may leave the range of the precision. Then the loss has a LossScale.
  bool scales_loss() const { return precision() == DType::float16; }
  bool operator==(const ArenaTypes&) const = default;
};

// Returns the dtypes of values, gradients, states and the shadow: "float32/float32/float32/bfloat16". Returns
// "float32" if all are equal and there is no shadow.
PLEXAURA_API std::string to_text(const ArenaTypes& types);

// The place of each parameter in the store. The first training program makes it, and it is an input of every
// other compile. The value arena and its shadow hold trainables, buffers and frozen parameters, in this
// order. The gradient arena holds trainables, buffers (see replaced_buffers()) and the tail. The optimizer's
// state arenas hold trainables. Offsets and counts are elements, and are the same in all arenas;
// bytes_before() converts them to bytes. Entries begin at multiples of 64 bytes in every arena. Several
// threads may read a Placement at once.
struct PLEXAURA_API Placement {
  struct Entry {
    std::string name;
    TensorType type;
    ParameterRole role;
    Layout layout;
    std::int64_t offset;
    std::int64_t count;  // number of physical elements, padding included
    bool operator==(const Entry&) const = default;
  };

  ArenaTypes types;
  // The entries in arena order. Trainable parameters are in the order in which backward finishes their
  // gradients.
  std::vector<Entry> entries;

  // Appends an entry. Trainables come first, then buffers, then frozen parameters; throws InternalError for
  // another order.
  void append(std::string name, TensorType type, ParameterRole role, Layout layout);
  // Null if no entry has the name; valid until entries change.
  const Entry* find(std::string_view name) const;

  std::int64_t count(ParameterRole role) const;
  std::int64_t value_count() const;
  std::int64_t gradient_count() const;  // number of elements of trainable parameters, buffers and tail
  std::int64_t tail_offset() const;     // offset of the tail in the gradient arena

  // Returns the bytes of the arena before this element. For the number of all elements, this is the size of
  // the arena.
  std::int64_t bytes_before(ArenaKind arena, std::int64_t element) const;
  std::size_t bytes(ArenaKind arena) const;
  // Returns the dtype of the arena's elements for parameters of this role. Throws InternalError for the
  // shadow if there is none.
  DType dtype(ArenaKind arena, ParameterRole role = ParameterRole::trainable) const;

  bool operator==(const Placement&) const = default;
};

// Returns one line for each entry; parse_placement(to_text(p)) == p. The text is sent between ranks, and is
// part of the hash of the plan.
PLEXAURA_API std::string to_text(const Placement& placement);
PLEXAURA_API Placement parse_placement(std::string_view text);

// A slice of the gradient arena that is announced and exchanged as one. The last bucket holds buffers and
// tail.
struct Bucket {
  std::int64_t offset = 0;
  std::int64_t count = 0;
  DType dtype = DType::float32;
  bool operator==(const Bucket&) const = default;
};

// Divides the trainable parameters, in order, into buckets of at least `bytes` bytes; the last of them may be
// smaller. Adds a bucket with buffers and tail.
PLEXAURA_API std::vector<Bucket> make_buckets(const Placement& placement, std::int64_t bytes);

}  // namespace plexaura
