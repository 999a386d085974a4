#pragma once

#include <optional>

#include "app/data/data_options.h"
#include "app/data/run_data.h"
#include "models/config/config.h"
#include "training/data/images/image_folder.h"
#include "training/data/tables/csv.h"

namespace plexaura {

// Returns the options for reading images in validation and for --predict.
ImageFolderOptions without_augmentation(ImageFolderOptions options);

// Return functions that read the files of --predict: tables without labels, whose rows have the columns of `trained` and,
// with `standardise`, are scaled as the training rows were; and images.
ReadSamples row_reader(CsvOptions options, const TrainedData& trained, bool standardise);
ReadSamples image_reader(const ImageFolderOptions& options);

// Returns data without samples, for samples of other files.
RunData data_without_samples(TensorType sample, const TrainedData& trained, ReadSamples read_samples);

// Returns the data for --predict, if the weights contain all that must be known about the training data.
// Opens no sample, and ignores data.path. Returns nothing if the weights do not contain it, as they never contain the
// size of the images of IDX files.
std::optional<RunData> prediction_data(const Config& config, const std::optional<TrainedData>& trained);

}  // namespace plexaura
