#pragma once

#include <memory>
#include <optional>

#include "app/data/data_options.h"
#include "app/data/data_pair.h"
#include "models/zoo/model.h"
#include "training/data/stream_source.h"
#include "training/data/tables/csv.h"

namespace plexaura {

// Opens a table. `trained` belongs to a trained model; the table must have its columns, words and classes.
DataPair open_table(const Section& data, const DataOptions& options, Task task,
                    const std::optional<TrainedData>& trained);

// Opens nothing yet. Returns the rows that the command data.stream prints, prepared as those of the table.
std::shared_ptr<const StreamSource> table_stream(const DataOptions& options, Task task,
                                                 const TrainedData& of_table);

// Throws UserError unless the model was trained on a table, for the same task, with the same columns of words, and
// predicts data.targets.
void require_table(const Section& data, const DataOptions& options, const TrainedData& trained);

// Selects in `options` the columns of a trained model, and the words that the model knows.
void use_columns_of(const TrainedData& trained, CsvOptions& options);

}  // namespace plexaura
