#include "tests/programs/faulty/flipped_bit.h"

#include <cstdint>
#include <dlfcn.h>
#include <sstream>

#include "core/params/parameter_store.h"

namespace plexaura {

namespace {

ParameterStore* trained = nullptr;

}  // namespace

// Replaces the function of libplexaura_core.so, which every training program calls on the store that it will
// train.
void ParameterStore::require_states(std::int64_t count) {
  static const auto real = reinterpret_cast<void (*)(ParameterStore*, std::int64_t)>(
      dlsym(RTLD_NEXT, "_ZN8plexaura14ParameterStore14require_statesEl"));
  trained = this;
  real(this, count);
}

void faulty::flip_bit(const std::string& where) {
  std::istringstream text(where);
  std::string name;
  std::int64_t state = 0;
  std::size_t bit = 0;
  text >> name >> state >> bit;
  Tensor value = state < 0 ? trained->read(name) : trained->read_state(state, name);
  value.data()[bit / 8] ^= std::byte{1} << bit % 8;
  state < 0 ? trained->write(name, value) : trained->write_state(state, name, value);
}

}  // namespace plexaura
