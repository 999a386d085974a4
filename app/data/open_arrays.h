#pragma once

#include <optional>

#include "app/data/data_options.h"
#include "app/data/data_pair.h"
#include "models/config/config.h"

namespace plexaura {

// Opens the arrays of a folder (format npy) or of a file (npz, hdf5). For `trained` see open_data(). Throws UserError
// that names the file, for arrays that do not fit each other or the task, and for keys without effect on them.
UnsplitSamples open_arrays(const Section& data, const DataOptions& options, Task task,
                           const std::optional<TrainedData>& trained);

}  // namespace plexaura
