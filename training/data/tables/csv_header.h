#pragma once

#include <cstddef>
#include <span>

#include "training/data/tables/csv_text.h"

namespace plexaura {

// Checks of the first line of a table, which mostly means that something was told wrongly. They throw UserError with
// file:line:column. `features` and `used` are columns, counted from 0.

// One cell where there should be several, or a line that is no part of the table.
void check_first_line(const CsvText& text, const CsvRow& first);

// A first line whose features are numbers would be lost as names of columns.
void check_header(const CsvText& text, const CsvRow& first, std::span<const std::size_t> features);

// A first line of names is no sample.
void check_no_header(const CsvText& text, const CsvRow& first, std::span<const std::size_t> features);

// Each of these columns must have a name: one without may hold the numbers of the rows.
void check_named(const CsvText& text, const CsvRow& header, std::span<const std::size_t> used);

// The last column is taken for the label, `label`, where nobody says otherwise: not if another is called "label", "class"
// or "target".
void check_assumed_label(const CsvText& text, const CsvRow& header, std::size_t label);

// A name that is given twice does not say which column is meant.
void check_names_differ(const CsvText& text, const CsvRow& header, std::span<const std::size_t> used);

}  // namespace plexaura
