#pragma once

#include <atomic>
#include <memory>

#include "core/base/export.h"
#include "core/device/backend.h"

namespace plexaura {

// A reference to a backend, for an object that uses it. If a std::shared_ptr owns the backend, the reference keeps the
// backend alive. Otherwise the reference detects that the backend was destroyed.
class PLEXAURA_API BackendUse {
 public:
  explicit BackendUse(Backend& backend)
      : backend_(&backend), owner_(backend.weak_from_this().lock()), exists_(backend.exists_) {}

  bool exists() const { return exists_->load(std::memory_order_relaxed); }
  // Throws UserError if the backend was destroyed.
  Backend& get() const;

 private:
  Backend* backend_;
  std::shared_ptr<Backend> owner_;
  std::shared_ptr<const std::atomic<bool>> exists_;
};

}  // namespace plexaura
