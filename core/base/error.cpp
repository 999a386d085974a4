#include "core/base/error.h"

namespace plexaura {

// Out of line, so that the type information of each class exists once, here, for every shared object.
Error::~Error() = default;
UserError::~UserError() = default;
DeviceError::~DeviceError() = default;
InternalError::~InternalError() = default;
OutOfMemory::~OutOfMemory() = default;

}  // namespace plexaura
