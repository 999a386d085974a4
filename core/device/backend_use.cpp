#include "core/device/backend_use.h"

#include "core/base/error.h"

namespace plexaura {

Backend& BackendUse::get() const {
  if (!exists())
    throw UserError(
        "the backend was destroyed before what was made for it; keep it as long as every store, VM, "
        "Predictor, "
        "Optimizer and Trainer of it, or own it by a std::shared_ptr, which they share");
  return *backend_;
}

}  // namespace plexaura
