#pragma once

#include "core/base/error.h"

namespace plexaura {

// The error of a rank that a cut in the network has separated from the ranks that continue.
class CutOff : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

}  // namespace plexaura
