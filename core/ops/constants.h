#pragma once

#include <source_location>

#include "core/base/export.h"
#include "core/graph/graph.h"

namespace plexaura {

// Constant values. Errors name the line `where`.

// 0, 1, ... count - 1. The dtype must hold count - 1; float32 holds whole numbers up to 2^24, bfloat16 up to 256.
PLEXAURA_API Node iota(Graph& graph, std::int64_t count, DType dtype = DType::int64,
                       std::source_location where = std::source_location::current());

// A matrix with 1 on the main diagonal and 0 elsewhere. Any dtype.
PLEXAURA_API Node eye(Graph& graph, std::int64_t rows, std::int64_t columns, DType dtype = DType::float32,
                      std::source_location where = std::source_location::current());

}  // namespace plexaura
