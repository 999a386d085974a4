#pragma once

#include <optional>

#include "app/data/run_data.h"
#include "models/config/config.h"
#include "training/data/images/image_folder.h"
#include "training/data/tables/csv.h"

namespace plexaura {

// Returns the options by which images are read in validation and for --predict.
ImageFolderOptions without_augmentation(ImageFolderOptions options);

// Read the files of --predict: tables without labels, whose rows have the columns of `trained` and, if
// `standardise`, are scaled as these; and images.
ReadSamples row_reader(CsvOptions options, const TrainedData& trained, bool standardise);
ReadSamples image_reader(const ImageFolderOptions& options);

// Throws UserError where a table is to be read by a model that was trained on something else.
void require_table(const Section& data, const TrainedData& trained);

// What --predict needs where the weights say what else there is to know: no sample is opened, and data.path is not
// looked at. Empty where they do not say it. Throws UserError for a format whose files --predict does not read.
std::optional<RunData> prediction_data(const Config& config, const std::optional<TrainedData>& trained);

}  // namespace plexaura
