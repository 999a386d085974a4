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
#include "core/params/trained_parts.h"
#include "core/tensor/tensor.h"

namespace plexaura {

// True for a valid name of a parameter: one or more ASCII letters and digits, '_', '-' and the dots of a
// path. So a name is always a single word.
PLEXAURA_API bool is_parameter_name(std::string_view name);

// A model's description of one of its parameters.
struct ParameterSpec {
  std::string name;  // such as "layer1.0.conv1.weight"; see is_parameter_name()
  TensorType type;
  ParameterRole role = ParameterRole::trainable;
  Initialiser initialiser;                // zeros by default
  std::vector<std::string> aliases = {};  // other names of a tied parameter
};

// Provides the memory of the gradient arena, such as a window that the ranks of a node share. Returns null if
// the backend shall allocate it. The store fills it with zeros.
using MemoryProvider = std::function<std::unique_ptr<Memory>(std::size_t bytes)>;

// The named parameters and buffers of a model in flat arenas. Before it is placed, it holds logical tensors
// in host memory, so that weights can be read and written before anything is compiled. After that, values,
// gradients and optimizer state are in the layout and order of the placement. Not thread-safe. Reads and
// writes do not wait for running programs, so they are allowed only between steps. Functions that need a
// placement throw UserError if there is none.
class PLEXAURA_API ParameterStore {
 public:
  // Throws UserError for an invalid name, two parameters of one name, a mix of dtypes, or a type that is not
  // floating.
  explicit ParameterStore(std::vector<ParameterSpec> specs, std::uint64_t seed = 0);
  // Deleted; share() makes another handle of the same parameters.
  ParameterStore(const ParameterStore&) = delete;
  // A moved-from store remains a handle of the same parameters, for objects that refer to it.
  ParameterStore(ParameterStore&& other) noexcept : state_(other.state_) {}
  ParameterStore& operator=(const ParameterStore&) = delete;
  ParameterStore& operator=(ParameterStore&& other) noexcept {
    state_ = other.state_;
    return *this;
  }
  ~ParameterStore() = default;

  // Returns another handle of the same parameters, which live as long as any handle. A VM, a Predictor or an
  // Optimizer works on a handle of its own, which it makes from the store that it gets.
  ParameterStore share() const { return ParameterStore(state_); }

  const std::vector<ParameterSpec>& specs() const { return state_->specs; }
  // Finds a parameter by name or alias. Throws UserError, which suggests the nearest known name.
  const ParameterSpec& spec(std::string_view name) const;
  bool contains(std::string_view name) const;
  DType dtype() const;
  // Number of trainable elements without padding, as in "25,557,032 parameters".
  std::int64_t trainable_elements() const;

  // Read and overwrite a parameter in its logical layout. write() raises the version, and throws UserError
  // for another type.
  Tensor read(std::string_view name) const;
  void write(std::string_view name, const Tensor& value);

  // Freezes a trainable parameter, or makes a frozen one trainable again, by name or alias. The new role
  // counts for programs that are compiled after the call. The arenas change when the store is placed for the
  // next training program. Throws UserError for a buffer.
  void set_trainable(std::string_view name, bool trainable);

  // Return and set the dtypes of the arenas. Until they are set, all are the dtype of the parameters. New
  // dtypes count for programs that are compiled after the call; the arenas change when the store is placed.
  // Throws UserError if the dtype of the values is not dtype(), or if a dtype is not floating.
  const ArenaTypes& types() const { return state_->types; }
  void set_types(const ArenaTypes& types);

  // Returns the placement, to which all parameters of the store that it lacks are appended as frozen ones.
  Placement complete(Placement placement) const;

  // Moves everything to arenas, according to the complete placement. May be called again with another
  // placement (for example another set of frozen parameters): values and state are kept by name.
  void place(Placement placement, Backend& backend, const MemoryProvider& gradients = {});
  bool placed() const { return state_->backend.has_value(); }
  const Placement& placement() const { return state_->placement; }

  // Makes the number of state arenas of the optimizer equal to `count`. New arenas are zero, and surplus ones
  // are freed. An arena ends after the last parameter that has this state: see TrainedParts::have_state().
  // Needs a placement.
  void require_states(std::int64_t count);
  std::int64_t states() const { return static_cast<std::int64_t>(state_->states.size()); }
  // Read and write the optimizer's state with this index for a parameter. Throw UserError for a parameter
  // without this state.
  Tensor read_state(std::int64_t index, std::string_view name) const;
  void write_state(std::int64_t index, std::string_view name, const Tensor& value);
  // Begins a training: sets all states to zero, the number of updates to 0, and the loss scale, if there is
  // one, to its initial value.
  void reset_states();

  // The parts of the parameters that Optimizers of this store train.
  TrainedParts& trained_parts() const { return state_->trained_parts; }
  // Returns the number of updates that all Optimizers of the store have made together.
  std::int64_t updates() const { return state_->trained_parts.updates(); }

  // Throw UserError if the types have no loss scale.
  LossScale read_loss_scale() const;
  void write_loss_scale(const LossScale& scale);

  // Returns the gradient of the last step. Throws UserError for a frozen parameter. For a buffer, returns what its update
  // adds to it or, if the update replaces the value, the next value: see replaced_buffers().
  Tensor read_gradient(std::string_view name) const;

  // Returns a parameter's values in the shadow. Throws UserError if ArenaTypes::shadow is empty.
  Tensor read_shadow(std::string_view name) const;

  // Addresses in device memory. These need a placement.
  Address values() const;
  Address gradients() const;
  Address state(std::int64_t index) const;
  Address shadow() const;   // throws UserError if there is no shadow
  Address scaling() const;  // throws UserError if there is no loss scale
  // A second arena of gradients, whose contents are added to the first one. The first call allocates it.
  Address addends();
  // Copies the values to the shadow, if there is one. Must be called after values are written by their
  // address.
  void update_shadow();

  // Returns the number of calls of place(). Addresses are valid until the next placement.
  std::uint64_t placed_times() const { return state_->placed_times; }

  // Increases whenever values change: by an update, a write, or a load. Values that are derived only from
  // parameters are then computed again.
  std::uint64_t version() const { return state_->version; }
  void raise_version() { ++state_->version; }

  // Throws UserError if the store is not placed, and if the backend was destroyed.
  Backend& backend() const;

 private:
  const Placement::Entry& entry(std::string_view name) const;
  // Read and write an arena that begins at the address `base`. The tensors that are read have the arena's
  // dtype; those that are written are cast to it.
  Tensor read_from(ArenaKind arena, Address base, std::string_view name) const;
  void write_to(ArenaKind arena, Address base, std::string_view name, const Tensor& value);
  void write_value_of(std::string_view name, const Tensor& value);
  std::unique_ptr<Memory> zeroed(std::size_t bytes, const MemoryProvider& provider);

  struct State {
    std::vector<ParameterSpec> specs;
    std::map<std::string, std::size_t, std::less<>> by_name;  // contains aliases, too
    std::vector<Tensor> logical;  // the values before the first place(); empty afterwards
    std::optional<BackendUse> backend;
    ArenaTypes types;
    Placement placement;
    std::unique_ptr<Memory> values;
    std::unique_ptr<Memory> shadow;   // null if there is none
    std::unique_ptr<Memory> scaling;  // null if there is no loss scale
    std::unique_ptr<Memory> gradients;
    std::unique_ptr<Memory> addends;  // null until addends() is called
    std::vector<std::unique_ptr<Memory>> states;
    std::uint64_t version = 1;
    std::uint64_t placed_times = 0;
    TrainedParts trained_parts;
  };
  explicit ParameterStore(std::shared_ptr<State> state) : state_(std::move(state)) {}

  std::shared_ptr<State> state_;  // never null
};

}  // namespace plexaura
