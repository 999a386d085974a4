#include "training/data/tables/csv.h"

#include <algorithm>
#include <fmt/format.h>

#include "core/base/error.h"
#include "training/data/tables/csv_cells.h"
#include "training/data/tables/csv_header.h"
#include "training/data/tables/csv_rows.h"
#include "training/data/tables/csv_text.h"
#include "training/files/file.h"

namespace plexaura {

namespace {

// Throws for a label that usually means a missing value, because it would become a class of its own.
void check_none_means_missing(const std::vector<CsvLabel>& labels) {
  for (const CsvLabel& label : labels)
    if (means_missing(label.text))
      throw UserError(
          fmt::format("{}: the label is '{}', as programs write a missing one; fill in the class, remove the "
                      "row, or set data.missing_is_class to true if a class is called so",
                      label.place, label.text));
}

}  // namespace

CsvDataset::CsvDataset(const std::filesystem::path& path, const CsvOptions& options) {
  const std::vector<std::uint8_t> bytes = InputFile(path).read_all();
  CsvText text(path.string(), {reinterpret_cast<const char*>(bytes.data()), bytes.size()}, options.delimiter);
  CsvRow row;
  if (!text.next(row))
    throw UserError(fmt::format("{}: the file is empty; it needs rows of samples", path.string()));
  check_first_line(text, row);
  CsvRows rows(path.string(), text, row, options);
  target_names_ = rows.target_names();
  label_name_ = rows.label_name();
  if (!options.header) rows.append(text, row);
  while (text.next(row)) rows.append(text, row);
  dropped_ = rows.dropped();
  if (rows.labels().empty())
    throw UserError(
        dropped_ == 0
            ? fmt::format("{}: no row follows the header; add samples", path.string())
            : fmt::format("{}: each of the {} rows lacks a cell, and data.missing is drop; fill in cells, "
                          "or remove the columns that lack them",
                          path.string(), dropped_));
  if (options.class_names.empty() && !options.missing_is_class) check_none_means_missing(rows.labels());
  class_names_ = options.class_names.empty() ? rows.classes() : options.class_names;
  labels_ = rows.has_label() ? rows.placed_labels(ClassPlaces(class_names_))
                             : std::vector<std::int64_t>(rows.labels().size(), 0);
  if (rows.has_label() || !target_names_.empty()) rows.check_numbers(path.string());
  feature_names_ = rows.feature_names();
  values_ = rows.values();
}

void CsvDataset::read(std::int64_t index, const SampleContext&, std::span<float> sample,
                      std::int64_t& label) const {
  const auto row = static_cast<std::size_t>(index);
  const auto width = feature_names_.size() + target_names_.size();
  std::copy_n(values_.begin() + static_cast<std::ptrdiff_t>(row * width), width, sample.begin());
  label = labels_[row];
}

}  // namespace plexaura
