#pragma once

#include <vector>

#include "app/data/data_options.h"
#include "models/config/keys.h"

namespace plexaura {

// Returns the keys of a table (`data.format: csv`).
std::vector<Key> table_keys(DataOptions& options);

// Sets `options.csv` from the keys. Throws UserError for keys that do not fit each other.
void complete_table(const Section& data, DataOptions& options);

}  // namespace plexaura
