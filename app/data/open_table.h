#pragma once

#include <optional>

#include "app/data/data_options.h"
#include "app/data/data_pair.h"
#include "models/zoo/model.h"
#include "training/data/tables/csv.h"

namespace plexaura {

// Opens a table. `trained`: of a trained model, whose columns, words and classes the table must have.
DataPair open_table(const Section& data, const DataOptions& options, Task task,
                    const std::optional<TrainedData>& trained);

// Throws UserError unless the model was trained on a table, for the same task, with the same columns of words, and
// predicts data.targets.
void require_table(const Section& data, const DataOptions& options, const TrainedData& trained);

// Selects the columns of a trained model, and the words that it knows.
void use_columns_of(const TrainedData& trained, CsvOptions& options);

}  // namespace plexaura
