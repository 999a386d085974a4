#pragma once

#include <doctest/doctest.h>
#include <string>

#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"
#include "training/data/tables/csv.h"

namespace plexaura::testing {

inline CsvDataset dataset_of(const std::string& text, const CsvOptions& options = {}) {
  const TemporaryFolder folder;
  return CsvDataset(folder.write("t.csv", text), options);
}

// Returns the error of a table without the path of its file, such as ":3:1: the cell is empty", or "" if there is none.
inline std::string error_in(const std::string& text, const CsvOptions& options = {}) {
  const TemporaryFolder folder;
  const auto path = folder.write("t.csv", text);
  const std::string error = user_error([&] { CsvDataset(path, options); });
  CAPTURE(error);
  if (error.empty()) return error;
  REQUIRE(error.starts_with(path.string()));
  return error.substr(path.string().size());
}

}  // namespace plexaura::testing
