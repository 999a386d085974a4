#pragma once

#include <vector>

#include "app/data/data_options.h"
#include "app/data/run_data.h"

namespace plexaura {

// Returns the keys of images with targets of their own.
std::vector<Key> image_target_keys(DataOptions& options);

// Throws UserError, with line and column, unless the keys of image_target_keys() fit the task and the other keys.
void check_image_targets(const Section& data, const DataOptions& options, DataUse use, Task task);

// Throws UserError if data.classes is given and is not the number of classes of the weights.
void require_mask_classes(const Section& data, const DataOptions& options, const TrainedData& trained);

// Opens images with targets of their own: see ImagePairs. Throws UserError for folders that are missing, and if the masks have
// another number of classes than `trained`.
RunData open_image_pairs(const Section& data, const Section& model, const DataOptions& options,
                         const std::optional<TrainedData>& trained);

}  // namespace plexaura
