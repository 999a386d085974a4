#pragma once

#include <optional>

#include "core/params/parameter_store.h"
#include "tests/support/backend.h"

namespace plexaura::testing {

// A store with a matrix in a blocked layout that has a second name, a buffer, and one arena of state.
class TinyStore {
 public:
  explicit TinyStore(double first, DType dtype = DType::float32, std::int64_t states = 1,
                     std::optional<DType> dtype_of_states = {}, Backend& backend = test_backend())
      : store({{"fc.weight",
                {dtype, Shape{3, 17}},
                ParameterRole::trainable,
                Initialiser::zeros(),
                {"tied.weight"}},
               {"bn.mean", {dtype, Shape{2}}, ParameterRole::buffer, Initialiser::zeros()}}) {
    Placement placement;
    placement.types = {dtype, dtype, dtype_of_states.value_or(dtype)};
    store.set_types(placement.types);
    placement.append("fc.weight", store.specs()[0].type, ParameterRole::trainable, Layout({0, 1}, {{1, 8}}));
    placement.append("bn.mean", store.specs()[1].type, ParameterRole::buffer, Layout::row_major(1));
    store.place(placement, backend);
    store.require_states(states);
    for (const ParameterSpec& spec : store.specs()) store.write(spec.name, counting(spec.type, first));
    for (std::int64_t i = 0; i < states; ++i)
      store.write_state(i, "fc.weight", counting({store.types().states, {3, 17}}, first + 0.5));
  }

  static Tensor counting(const TensorType& type, double first) {
    Tensor tensor(TensorType{DType::float64, type.shape});
    for (double& value : tensor.as<double>()) value = first++;
    return tensor.cast(type.dtype);
  }

  double weight() const { return store.read("fc.weight").to_doubles()[0]; }
  double state(std::int64_t index) const { return store.read_state(index, "fc.weight").to_doubles()[0]; }

  ParameterStore store;
};

}  // namespace plexaura::testing
