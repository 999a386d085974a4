#include "core/exchange/courier.h"

namespace plexaura {

Courier::~Courier() = default;

}  // namespace plexaura
