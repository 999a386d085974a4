#include "core/device/transfer_counts.h"

namespace plexaura {

CountsTransfers::~CountsTransfers() = default;

}  // namespace plexaura
