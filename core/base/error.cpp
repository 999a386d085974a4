#include "core/base/error.h"

namespace plexaura {

// Defined here and not in the header, so that the type information of each class exists only once, for all
// shared objects.
Error::~Error() = default;
UserError::~UserError() = default;
DeviceError::~DeviceError() = default;
InternalError::~InternalError() = default;
OutOfMemory::~OutOfMemory() = default;

}  // namespace plexaura
