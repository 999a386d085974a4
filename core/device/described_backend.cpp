#include "core/device/described_backend.h"

namespace plexaura {

DescribedBackend::~DescribedBackend() = default;

}  // namespace plexaura
