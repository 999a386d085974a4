#include "core/params/parameter_store.h"

#include <algorithm>
#include <fmt/format.h>

#include "core/base/did_you_mean.h"
#include "core/base/error.h"
#include "core/device/transfer.h"

namespace plexaura {

bool is_parameter_name(std::string_view name) {
  constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
  return !name.empty() && name.find_first_not_of(letters) == std::string_view::npos;
}

ParameterStore::ParameterStore(std::vector<ParameterSpec> specs, std::uint64_t seed)
    : state_(std::make_shared<State>()) {
  state_->specs = std::move(specs);
  const auto remember = [&](const std::string& name, std::size_t index) {
    if (!is_parameter_name(name))
      throw UserError(fmt::format(
          "a parameter is named '{}'; use only letters and digits of ASCII, '_', '-' and dots", name));
    if (!state_->by_name.emplace(name, index).second)
      throw UserError(fmt::format(
          "two parameters are named '{}'; give each its own name, or share one object to tie them", name));
  };
  for (std::size_t i = 0; i < state_->specs.size(); ++i) {
    ParameterSpec& spec = state_->specs[i];
    remember(spec.name, i);
    for (const std::string& alias : spec.aliases) remember(alias, i);
    if (spec.type.dtype != dtype())
      throw UserError(
          fmt::format("the parameter '{}' is {} and '{}' is {}; all parameters of a model have one dtype",
                      spec.name, name_of(spec.type.dtype), state_->specs[0].name, name_of(dtype())));
    state_->logical.push_back(spec.initialiser.make(spec.type, spec.name, seed));
    spec.initialiser.read = nullptr;  // it may keep a whole file in memory
  }
  state_->types = state_->placement.types = ArenaTypes::all(dtype());
}

const ParameterSpec& ParameterStore::spec(std::string_view name) const {
  const auto found = state_->by_name.find(name);
  if (found != state_->by_name.end()) return state_->specs[found->second];
  std::vector<std::string> known;
  for (const auto& [key, index] : state_->by_name) known.push_back(key);
  throw UserError(fmt::format("there is no parameter '{}'{}", name, did_you_mean(name, known)));
}

bool ParameterStore::contains(std::string_view name) const { return state_->by_name.contains(name); }

DType ParameterStore::dtype() const {
  return state_->specs.empty() ? DType::float32 : state_->specs[0].type.dtype;
}

std::int64_t ParameterStore::trainable_elements() const {
  std::int64_t total = 0;
  for (const ParameterSpec& spec : state_->specs)
    if (spec.role == ParameterRole::trainable) total += spec.type.shape.elements();
  return total;
}

Tensor ParameterStore::read(std::string_view name) const {
  const ParameterSpec& found = spec(name);
  return placed() ? read_from(ArenaKind::value, values(), found.name)
                  : state_->logical[state_->by_name.find(name)->second];
}

void ParameterStore::write(std::string_view name, const Tensor& value) {
  const ParameterSpec& found = spec(name);
  if (value.type() != found.type)
    throw UserError(fmt::format(
        "the parameter '{}' is {} and cannot be overwritten with {}; shapes and dtypes must be equal", name,
        to_string(found.type), to_string(value.type())));
  if (placed())
    write_value_of(found.name, value);
  else
    state_->logical[state_->by_name.find(name)->second] = value;
  raise_version();
}

void ParameterStore::set_trainable(std::string_view name, bool trainable) {
  if (spec(name).role == ParameterRole::buffer)
    throw UserError(fmt::format("'{}' is a buffer: it is neither trained nor frozen", name));
  state_->specs[state_->by_name.find(name)->second].role =
      trainable ? ParameterRole::trainable : ParameterRole::frozen;
}

void ParameterStore::set_types(const ArenaTypes& types) {
  if (types.values != dtype())
    throw UserError(fmt::format(
        "the store has parameters of {}, but its values would be {}; make the store with that type",
        name_of(dtype()), name_of(types.values)));
  for (const DType dtype : {types.gradients, types.states, types.shadow.value_or(types.values)})
    if (!is_floating(dtype))
      throw UserError(fmt::format("an arena of the parameter store would hold {}; choose a floating type",
                                  name_of(dtype)));
  state_->types = types;
  if (!placed()) state_->placement.types = types;
}

// Returns the placement with all parameters of the store. If the program that made the placement used no
// parameters, it has no types either, so those of the store are taken.
Placement ParameterStore::complete(Placement placement) const {
  if (placement.entries.empty()) placement.types = state_->types;
  for (const ParameterSpec& spec : state_->specs)
    if (placement.find(spec.name) == nullptr)
      placement.append(spec.name, spec.type, ParameterRole::frozen,
                       Layout::row_major(spec.type.shape.rank()));
  return placement;
}

namespace {

std::int64_t end_of(const Placement::Entry& entry) { return entry.offset + entry.count; }

bool is_within(const Memory& state_arena, const Placement& placement, const Placement::Entry& entry) {
  return entry.role == ParameterRole::trainable &&
         static_cast<std::size_t>(placement.bytes_before(ArenaKind::state, end_of(entry))) <=
             state_arena.bytes();
}

// Returns the bytes of a state arena up to the last parameter that has this state.
std::size_t state_bytes(std::int64_t index, const Placement& placement, const TrainedParts& parts) {
  std::int64_t end = 0;
  for (const Placement::Entry& entry : placement.entries)
    if (entry.role == ParameterRole::trainable && parts.have_state(index, entry.name)) end = end_of(entry);
  return static_cast<std::size_t>(placement.bytes_before(ArenaKind::state, end));
}

}  // namespace

void ParameterStore::place(Placement placement, Backend& backend, const MemoryProvider& gradients) {
  placement = complete(std::move(placement));
  if (placement.types != state_->types)
    throw UserError(
        fmt::format("the program was compiled for arenas of {} and the store has {}; compile it with "
                    "the types of the store",
                    to_text(placement.types), to_text(state_->types)));
  for (const Placement::Entry& entry : placement.entries)
    if (spec(entry.name).type != entry.type)
      throw UserError(fmt::format("the program uses '{}' as {} and the store holds {}; {}", entry.name,
                                  to_string(entry.type), to_string(spec(entry.name).type),
                                  spec(entry.name).type.dtype == entry.type.dtype
                                      ? "give both one shape"
                                      : "a model has the dtype of the last store that was made for it: make "
                                        "both of one dtype"));
  // Keeps the former backend alive until its memory is freed.
  const std::optional<BackendUse> before = state_->backend;
  std::vector<Tensor> values;
  for (const ParameterSpec& spec : state_->specs) values.push_back(read(spec.name));
  std::vector<std::map<std::string, Tensor>> states(state_->states.size());
  for (std::size_t i = 0; i < state_->states.size(); ++i)
    for (const Placement::Entry& entry : state_->placement.entries)
      if (is_within(*state_->states[i], state_->placement, entry))
        states[i].emplace(entry.name, read_state(static_cast<std::int64_t>(i), entry.name));

  const LossScale scale = state_->scaling ? read_loss_scale() : LossScale{};

  if (placed()) drain(this->backend());
  state_->placement = std::move(placement);
  state_->backend.emplace(backend);
  ++state_->placed_times;
  state_->values = zeroed(state_->placement.bytes(ArenaKind::value), {});
  state_->shadow = state_->types.shadow ? zeroed(state_->placement.bytes(ArenaKind::shadow), {}) : nullptr;
  state_->scaling =
      state_->types.scales_loss() ? zeroed(state_->placement.bytes(ArenaKind::scaling), {}) : nullptr;
  if (state_->scaling) write_loss_scale(scale);
  state_->gradients = zeroed(state_->placement.bytes(ArenaKind::gradient), gradients);
  state_->addends = nullptr;
  state_->states.clear();
  for (std::size_t i = 0; i < state_->specs.size(); ++i) write_value_of(state_->specs[i].name, values[i]);
  state_->logical.clear();
  require_states(static_cast<std::int64_t>(states.size()));
  for (std::size_t i = 0; i < states.size(); ++i)
    for (const auto& [name, state] : states[i])
      if (is_within(*state_->states[i], state_->placement, entry(name)))
        write_to(ArenaKind::state, state_->states[i]->address(), name, state);
  raise_version();
}

void ParameterStore::require_states(std::int64_t count) {
  backend();
  state_->states.resize(static_cast<std::size_t>(std::min(states(), count)));
  while (states() < count)
    state_->states.push_back(zeroed(state_bytes(states(), state_->placement, state_->trained_parts), {}));
}

void ParameterStore::reset_states() {
  for (const auto& memory : state_->states) write_zeros(backend(), memory->address(), memory->bytes());
  if (state_->scaling) write_loss_scale({});
  state_->trained_parts.set_updates(0);
}

namespace {

void require_state(const Placement& placement, const Placement::Entry& entry,
                   const std::vector<std::unique_ptr<Memory>>& arenas, std::int64_t index) {
  if (entry.role != ParameterRole::trainable)
    throw UserError(fmt::format("'{}' is {} and has no optimizer state", entry.name,
                                entry.role == ParameterRole::frozen ? "frozen" : "a buffer"));
  const auto arena = static_cast<std::size_t>(index);
  if (arena < arenas.size() && !is_within(*arenas[arena], placement, entry))
    throw UserError(fmt::format(
        "'{}' has no optimizer state number {}, counted from 0: the Optimizer that trains it keeps fewer",
        entry.name, index));
}

}  // namespace

Tensor ParameterStore::read_state(std::int64_t index, std::string_view name) const {
  require_state(state_->placement, entry(name), state_->states, index);
  return read_from(ArenaKind::state, state(index), name);
}

void ParameterStore::write_state(std::int64_t index, std::string_view name, const Tensor& value) {
  require_state(state_->placement, entry(name), state_->states, index);
  const TensorType type{state_->placement.types.states, entry(name).type.shape};
  if (value.type() != type)
    throw UserError(fmt::format("the state of '{}' is {} and cannot be overwritten with {}", entry(name).name,
                                to_string(type), to_string(value.type())));
  write_to(ArenaKind::state, state(index), name, value);
}

Tensor ParameterStore::read_gradient(std::string_view name) const {
  if (entry(name).role == ParameterRole::frozen)
    throw UserError(fmt::format("the parameter '{}' is frozen and has no gradient", name));
  return read_from(ArenaKind::gradient, gradients(), name);
}

Tensor ParameterStore::read_shadow(std::string_view name) const {
  return read_from(ArenaKind::shadow, shadow(), name);
}

Address ParameterStore::values() const { return backend(), state_->values->address(); }
Address ParameterStore::gradients() const { return backend(), state_->gradients->address(); }
Address ParameterStore::state(std::int64_t index) const {
  backend();
  if (index < 0 || index >= states())
    throw UserError(fmt::format(
        "the parameter store has {} arenas of optimizer state, so there is no number {}, counted from 0",
        states(), index));
  return state_->states[static_cast<std::size_t>(index)]->address();
}

Address ParameterStore::shadow() const {
  backend();
  if (!state_->shadow)
    throw UserError("the parameter store has no shadow of its values; give it one with set_types()");
  return state_->shadow->address();
}

Address ParameterStore::scaling() const {
  backend();
  if (!state_->scaling)
    throw UserError("the parameter store has no loss scale; give it one with set_types(): float16 has one");
  return state_->scaling->address();
}

LossScale ParameterStore::read_loss_scale() const {
  LossScale scale;
  copy_to_host(backend(), reinterpret_cast<std::byte*>(&scale), scaling(), sizeof scale);
  return scale;
}

// NOLINTNEXTLINE(readability-make-member-function-const): it changes what the store holds
void ParameterStore::write_loss_scale(const LossScale& scale) {
  copy_to_device(backend(), scaling(), reinterpret_cast<const std::byte*>(&scale), sizeof scale);
}

Address ParameterStore::addends() {
  backend();
  if (!state_->addends) state_->addends = zeroed(state_->placement.bytes(ArenaKind::addend), {});
  return state_->addends->address();
}

void ParameterStore::update_shadow() {
  if (!state_->shadow) return;
  for (const ParameterSpec& spec : state_->specs)
    write_to(ArenaKind::shadow, shadow(), spec.name, read(spec.name));
}

Backend& ParameterStore::backend() const {
  if (!placed())
    throw UserError(
        "the parameter store is not placed yet and has no gradients, state or addresses; call place(), or "
        "make "
        "the VM, Optimizer or Trainer of it first");
  return state_->backend->get();
}

const Placement::Entry& ParameterStore::entry(std::string_view name) const {
  backend();
  return *state_->placement.find(spec(name).name);
}

Tensor ParameterStore::read_from(ArenaKind arena, Address base, std::string_view name) const {
  const Placement::Entry& found = entry(name);
  const TensorType type{state_->placement.dtype(arena, found.role), found.type.shape};
  return read_value(backend(), base + state_->placement.bytes_before(arena, found.offset), type,
                    found.layout);
}

void ParameterStore::write_to(ArenaKind arena, Address base, std::string_view name, const Tensor& value) {
  const Placement::Entry& found = entry(name);
  write_value(backend(), base + state_->placement.bytes_before(arena, found.offset), found.layout,
              value.cast(state_->placement.dtype(arena, found.role)));
}

void ParameterStore::write_value_of(std::string_view name, const Tensor& value) {
  write_to(ArenaKind::value, values(), name, value);
  if (state_->shadow) write_to(ArenaKind::shadow, shadow(), name, value);
}

std::unique_ptr<Memory> ParameterStore::zeroed(std::size_t bytes, const MemoryProvider& provider) {
  std::unique_ptr<Memory> memory = provider ? provider(bytes) : nullptr;
  if (!memory) memory = backend().allocate(bytes, MemoryUse::device);
  write_zeros(backend(), memory->address(), bytes);
  return memory;
}

}  // namespace plexaura
