#include "core/device/device_sums.h"

namespace plexaura {

DeviceSums::~DeviceSums() = default;
SumsOnDevices::~SumsOnDevices() = default;

}  // namespace plexaura
