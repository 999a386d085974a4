#include "core/params/courier.h"

namespace plexaura {

Courier::~Courier() = default;

}  // namespace plexaura
