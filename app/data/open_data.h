#pragma once

#include <optional>

#include "app/data/run_data.h"

namespace plexaura {

// Opens what the section `data` names. Every key is read, and described in docs/reference/configuration.md. Throws
// UserError with file and line, or naming the data's own file.
// `trained`: of a model that is used and not trained. A table is then read as that model was taught: its columns,
// their scale, its classes; and there need be no row to train on.
RunData open_data(const Config& config, const std::optional<TrainedData>& trained = {});

}  // namespace plexaura
