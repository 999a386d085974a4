#pragma once

#include <optional>

#include "app/data/run_data.h"

namespace plexaura {

// Opens the data that the section `data` describes. Reads every key of the section;
// docs/reference/configuration.md lists them. Throws UserError with file and line, or with the name of a data
// file. `trained`: the data of a model that was trained before. A table is then read with the columns, scale
// and classes of that model, and need not have rows for training.
RunData open_data(const Config& config, const std::optional<TrainedData>& trained = {});

}  // namespace plexaura
