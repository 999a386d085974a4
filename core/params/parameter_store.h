#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/export.h"
#include "core/device/backend_use.h"
#include "core/params/initialiser.h"
#include "core/params/placement.h"
#include "core/tensor/tensor.h"

namespace plexaura {

// Whether a parameter may have this name: letters and digits of ASCII, '_', '-' and the dots of a path, at
// least one. So a name is one word wherever it is written.
PLEXAURA_API bool is_parameter_name(std::string_view name);

// What a model says of one of its parameters.
struct ParameterSpec {
  std::string name;  // "layer1.0.conv1.weight"; see is_parameter_name()
  TensorType type;
  ParameterRole role = ParameterRole::trainable;
  Initialiser initialiser;                // zeros unless another one is given
  std::vector<std::string> aliases = {};  // other names of a tied parameter
};

// Provides the memory of the gradient arena (a window that the ranks of a node share). Returns null where the backend is to
// allocate it. The store fills it with zeros.
using MemoryProvider = std::function<std::unique_ptr<Memory>(std::size_t bytes)>;

// The named parameters and buffers of a model in flat arenas. Until it is placed it holds logical tensors in
// host memory, so that weights can be read and written before anything is compiled; then values, gradients
// and optimizer state lie in the layout and order of the placement. Not thread-safe; reading and writing wait
// for nothing: between steps only. What needs a placement throws UserError before there is one.
class PLEXAURA_API ParameterStore {
 public:
  // Throws UserError for a name that cannot be one, two parameters of one name, a mix of dtypes, or a type
  // that is not floating.
  explicit ParameterStore(std::vector<ParameterSpec> specs, std::uint64_t seed = 0);
  ParameterStore(const ParameterStore&) = delete;  // share() is another handle of the same parameters
  // A store that was moved from goes on as the same store, for those that refer to it.
  ParameterStore(ParameterStore&& other) noexcept : state_(other.state_) {}
  ParameterStore& operator=(const ParameterStore&) = delete;
  ParameterStore& operator=(ParameterStore&& other) noexcept {
    state_ = other.state_;
    return *this;
  }
  ~ParameterStore() = default;

  // Another handle of the same parameters, which live as long as one of the handles. What a VM, a Predictor or an
  // Optimizer does with the store it was given it does with a handle of its own.
  ParameterStore share() const { return ParameterStore(state_); }

  const std::vector<ParameterSpec>& specs() const { return state_->specs; }
  // By name or alias; UserError that names the nearest known name.
  const ParameterSpec& spec(std::string_view name) const;
  bool contains(std::string_view name) const;
  DType dtype() const;
  std::int64_t trainable_elements() const;  // logical: "25,557,032 parameters"

  // Reads out and overwrites in logical layout. write() throws UserError for another type, and raises the
  // version.
  Tensor read(std::string_view name) const;
  void write(std::string_view name, const Tensor& value);

  // Freezes a trainable parameter or trains a frozen one again, by name or alias. Holds for what is compiled
  // from then on; the store itself changes when it is placed as the next training program says. UserError for
  // a buffer.
  void set_trainable(std::string_view name, bool trainable);

  // The dtypes of the arenas: that of the parameters, until they are set. As with set_trainable(), they hold for
  // what is compiled from then on, and the store changes when it is placed. UserError where values would not be
  // of dtype(), or an arena not floating.
  const ArenaTypes& types() const { return state_->types; }
  void set_types(const ArenaTypes& types);

  // The placement with the parameters that it does not name behind, as frozen.
  Placement complete(Placement placement) const;

  // Moves everything to arenas, as the complete placement says. May be called again with another placement (a changed
  // frozen set): values and state are kept by name.
  void place(Placement placement, Backend& backend, const MemoryProvider& gradients = {});
  bool placed() const { return state_->backend.has_value(); }
  const Placement& placement() const { return state_->placement; }

  // State arenas of the optimizer: zeros at first. Needs a placement.
  void require_states(std::int64_t count);
  std::int64_t states() const { return static_cast<std::int64_t>(state_->states.size()); }
  Tensor read_state(std::int64_t index, std::string_view name) const;
  void write_state(std::int64_t index, std::string_view name, const Tensor& value);
  // For training that begins: zeros in all states, no updates, and the loss scale, where there is one, as at first.
  void reset_states();

  // How many updates the states have seen: kept by an Optimizer, and set by load_checkpoint().
  std::int64_t updates() const { return state_->updates; }
  void set_updates(std::int64_t updates) { state_->updates = updates; }

  // UserError where the types scale no loss.
  LossScale read_loss_scale() const;
  void write_loss_scale(const LossScale& scale);

  // The gradient as the last step left it; for a buffer what its update adds or, where it adds nothing to the old
  // value, the next value: see replaced_buffers().
  Tensor read_gradient(std::string_view name) const;

  // Values as their shadow has them. UserError where the types have none.
  Tensor read_shadow(std::string_view name) const;

  // Addresses in device memory. Need a placement.
  Address values() const;
  Address gradients() const;
  Address state(std::int64_t index) const;
  Address shadow() const;   // UserError where the types have none
  Address scaling() const;  // likewise where they scale no loss
  // A second arena of gradients, for what is to be added to the first; made when it is first asked for.
  Address addends();
  // Makes the shadow, where there is one, follow the values: for who writes values by their address.
  void update_shadow();

  // How often place() was called: addresses hold from one time to the next.
  std::uint64_t placed_times() const { return state_->placed_times; }

  // Raised whenever values change: update, write, load. What is derived from parameters alone is recomputed
  // then.
  std::uint64_t version() const { return state_->version; }
  void raise_version() { ++state_->version; }

  // UserError where it is gone.
  Backend& backend() const;

 private:
  const Placement::Entry& entry(std::string_view name) const;
  // `base` is the arena's address. Values have its dtype; what is written is cast to it.
  Tensor read_from(ArenaKind arena, Address base, std::string_view name) const;
  void write_to(ArenaKind arena, Address base, std::string_view name, const Tensor& value);
  void write_value_of(std::string_view name, const Tensor& value);
  std::unique_ptr<Memory> zeroed(std::size_t bytes, const MemoryProvider& provider);

  struct State {
    std::vector<ParameterSpec> specs;
    std::map<std::string, std::size_t, std::less<>> by_name;  // aliases too
    std::vector<Tensor> logical;                              // until placed
    std::optional<BackendUse> backend;
    ArenaTypes types;
    Placement placement;
    std::unique_ptr<Memory> values;
    std::unique_ptr<Memory> shadow;   // null where there is none
    std::unique_ptr<Memory> scaling;  // null where no loss is scaled
    std::unique_ptr<Memory> gradients;
    std::unique_ptr<Memory> addends;  // null until it is asked for
    std::vector<std::unique_ptr<Memory>> states;
    std::int64_t updates = 0;
    std::uint64_t version = 1;
    std::uint64_t placed_times = 0;
  };
  explicit ParameterStore(std::shared_ptr<State> state) : state_(std::move(state)) {}

  std::shared_ptr<State> state_;  // never null
};

}  // namespace plexaura
