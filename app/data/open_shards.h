#pragma once

#include <optional>

#include "app/data/data_options.h"
#include "app/data/data_pair.h"
#include "models/config/config.h"

namespace plexaura {

// Packed shards of image files, or of samples.
struct OpenedShards {
  DataPair images = {};         // `train` is null for shards of samples
  UnsplitSamples samples = {};  // `samples` is null for shards of image files
  std::uint64_t identity = 0;   // changes if a training sample or the order does
};

// Opens the shards in data.path. For `trained` see open_data(). Throws UserError that names the file, for shards
// that do not fit the task, and for keys without effect on them.
OpenedShards open_shards(const Section& data, const DataOptions& options, Task task,
                         const std::optional<TrainedData>& trained);

}  // namespace plexaura
