#pragma once

#include "app/data/data_options.h"
#include "app/data/run_data.h"

namespace plexaura {

// Opens the text of data.format text: divides it into tokens, and these into windows. `trained` describes the data of a
// model that was trained before, whose vocabulary is used; if it is empty, the vocabulary is that of the training
// text. Throws UserError with file and line, or with the name of a file.
RunData open_text(const Section& data, const DataOptions& options, const std::optional<TrainedData>& trained,
                  DataUse use);

// Returns the data for continuing texts: the shape of a window and the vocabulary, and no sample. Throws UserError for
// weights of a model that was not trained on such a text.
RunData data_to_generate(const Config& config, const std::optional<TrainedData>& trained);

}  // namespace plexaura
