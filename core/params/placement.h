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
  trainable,  // has a gradient and optimizer state
  buffer,     // running statistics: changed by updates
  frozen      // read only
};

// What each step leaves behind the gradients, summed over ranks and micro-batches like them. The metrics of
// the model follow the first one.
enum class TailSlot : std::uint8_t { loss, samples, stop, failed, first_metric };
inline constexpr std::int64_t tail_count = 16;  // elements reserved
inline constexpr std::size_t most_metrics = tail_count - static_cast<std::size_t>(TailSlot::first_metric);

constexpr TailSlot metric_slot(std::size_t index) {
  return static_cast<TailSlot>(static_cast<std::size_t>(TailSlot::first_metric) + index);
}

// By what the loss is multiplied so that gradients stay in the range of float16: a power of 2, which the update
// chooses on the device. A step whose gradients are not finite changes nothing but this: the scale halves. After
// `growth_steps` good steps in a row it doubles.
struct LossScale {
  static constexpr float least = 1;
  static constexpr float most = 1 << 24;
  static constexpr float growth_steps = 2000;

  float scale = 1 << 16;
  float good_steps = 0;     // since the scale has changed
  float skipped_steps = 0;  // in all
  bool operator==(const LossScale&) const = default;
};
// Its members as elements of ArenaKind::scaling.
enum class ScalingSlot : std::uint8_t { scale, good_steps, skipped_steps };
inline constexpr std::int64_t scaling_count = 3;
constexpr ArenaSlice slice_of(ScalingSlot slot) {
  return {.arena = ArenaKind::scaling, .offset = static_cast<std::int64_t>(slot), .count = 1};
}
static_assert(sizeof(LossScale) == scaling_count * sizeof(float));

// The dtypes of the store's arenas, all floating.
struct ArenaTypes {
  DType values = DType::float32;     // also of the tail and of what buffers get, in the gradient arena
  DType gradients = DType::float32;  // of trainables
  DType states = DType::float32;
  std::optional<DType> shadow = {};  // of the copy of the values that each update writes; empty: no copy

  static ArenaTypes all(DType dtype) { return {dtype, dtype, dtype}; }
  // Weights, gradients and state in float32, and a shadow for programs that compute in `narrow`, bfloat16 or float16.
  // Gradients stay in float32: sums over ranks and micro-batches add them, and their bytes are few beside activations.
  static ArenaTypes mixed(DType narrow) { return {DType::float32, DType::float32, DType::float32, narrow}; }

  // In which dtype a model computes what may have so few bits: see core/compile/mixed_precision.h.
  DType precision() const { return shadow.value_or(values); }
  bool is_mixed() const { return size_of(precision()) < size_of(values); }
  // Whether gradients leave the range of the precision, so that the loss has a LossScale.
  bool scales_loss() const { return precision() == DType::float16; }
  bool operator==(const ArenaTypes&) const = default;
};

PLEXAURA_API std::string to_text(
    const ArenaTypes& types);  // "float32", or "float32/bfloat16/float32/bfloat16"

// Where each parameter lies in the store: a value, made by the first training program and an input of every
// other compile. The value arena is trainables, buffers, frozen, and so is its shadow; the gradient arena is
// trainables, buffers (see replaced_buffers()), tail; the optimizer's state arenas are trainables. Offsets and counts are
// elements: one index means the same in all arenas, and bytes_before() says where it lies. Entries begin at
// multiples of 64 bytes in every arena. Several threads may read it at once.
struct PLEXAURA_API Placement {
  struct Entry {
    std::string name;
    TensorType type;
    ParameterRole role;
    Layout layout;
    std::int64_t offset;
    std::int64_t count;  // physical elements with padding
    bool operator==(const Entry&) const = default;
  };

  ArenaTypes types;
  std::vector<Entry>
      entries;  // in arena order: trainables in the order in which backward finishes their gradients

  // Appends an entry behind the last one; trainables first, then buffers, then frozen (InternalError
  // otherwise).
  void append(std::string name, TensorType type, ParameterRole role, Layout layout);
  const Entry* find(std::string_view name) const;  // null where there is none; holds until entries change

  std::int64_t count(ParameterRole role) const;
  std::int64_t value_count() const;
  std::int64_t gradient_count() const;  // trainables, buffers, tail
  std::int64_t tail_offset() const;     // in the gradient arena

  // Where this element begins in the arena; of the number of all elements, the bytes of the arena.
  std::int64_t bytes_before(ArenaKind arena, std::int64_t element) const;
  std::size_t bytes(ArenaKind arena) const;
  // Of what the arena holds of parameters of this role. InternalError for the shadow where there is none.
  DType dtype(ArenaKind arena, ParameterRole role = ParameterRole::trainable) const;

  bool operator==(const Placement&) const = default;
};

// One line an entry; parse(to_text(p)) == p. Sent between ranks, hashed into the plan.
PLEXAURA_API std::string to_text(const Placement& placement);
PLEXAURA_API Placement parse_placement(std::string_view text);

// A slice of the gradient arena that is announced and exchanged as one; buffers and tail are the last bucket.
struct Bucket {
  std::int64_t offset = 0;
  std::int64_t count = 0;
  DType dtype = DType::float32;
  bool operator==(const Bucket&) const = default;
};

// Cuts the trainables, in order, into buckets of at least `bytes` each.
PLEXAURA_API std::vector<Bucket> make_buckets(const Placement& placement, std::int64_t bytes);

}  // namespace plexaura
