#pragma once

#include "core/base/error.h"

namespace plexaura {

// The network was cut, and the ranks on the other side continue without this one.
class CutOff : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

}  // namespace plexaura
