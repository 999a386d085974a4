#pragma once

#include <optional>

#include "app/data/data_options.h"
#include "app/data/run_data.h"

namespace plexaura {

// Opens the data that the section `data` describes. Reads the keys of the section, which
// docs/reference/configuration.md lists, except for those that only a Trainer needs (reading_keys()). Throws
// UserError with file and line, or with the name of a data file. `trained` describes the data of a model that was
// trained before. A table is then read with the columns, scale and classes of that model, and need not have rows for
// training. A client of a server trains with the classes and the scale of the server: it gives `trained` and
// DataUse::train. Otherwise data with `trained` are for evaluation.
RunData open_data(const Config& config, const std::optional<TrainedData>& trained = {});
RunData open_data(const Config& config, const std::optional<TrainedData>& trained, DataUse use);

}  // namespace plexaura
