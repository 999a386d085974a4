#include "core/params/dealer.h"

namespace plexaura {

Dealer::~Dealer() = default;

}  // namespace plexaura
