#pragma once

#include <atomic>
#include <memory>

#include "core/base/export.h"
#include "core/device/backend.h"

namespace plexaura {

// A backend as seen by what was made for it. Where a std::shared_ptr owns the backend, this owns it too. Otherwise this
// owns nothing, and notices that the backend is gone.
class PLEXAURA_API BackendUse {
 public:
  explicit BackendUse(Backend& backend)
      : backend_(&backend), owner_(backend.weak_from_this().lock()), exists_(backend.exists_) {}

  bool exists() const { return exists_->load(std::memory_order_relaxed); }
  // UserError where the backend is gone.
  Backend& get() const;

 private:
  Backend* backend_;
  std::shared_ptr<Backend> owner_;
  std::shared_ptr<const std::atomic<bool>> exists_;
};

}  // namespace plexaura
