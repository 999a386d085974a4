#include "core/exchange/dealer.h"

namespace plexaura {

Dealer::~Dealer() = default;

}  // namespace plexaura
