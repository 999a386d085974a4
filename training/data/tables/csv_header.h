#pragma once

#include <cstddef>
#include <span>

#include "training/data/tables/csv_text.h"

namespace plexaura {

// Checks of the first line of a table, which usually find a wrong option. They throw UserError with
// file:line:column. `features` and `used` are columns, counted from 0.

// Throws if the line has one cell although it contains another delimiter, or if the line is no part of the table.
void check_first_line(const CsvText& text, const CsvRow& first);

// Throws if all features of the first line are numbers: the line would be used as names of columns, and lost
// as a sample.
void check_header(const CsvText& text, const CsvRow& first, std::span<const std::size_t> features);

// Throws if the first line contains only names although the table has no header.
void check_no_header(const CsvText& text, const CsvRow& first, std::span<const std::size_t> features);

// Throws if one of these columns has no name, because it may contain the numbers of the rows.
void check_named(const CsvText& text, const CsvRow& header, std::span<const std::size_t> used);

// Called if the user names no label, so that the last column, `label`, is used. Throws if another column is
// named "label", "labels", "class" or "target", in small or capital letters, and the last one is not.
void check_assumed_label(const CsvText& text, const CsvRow& header, std::size_t label);

// Throws if one of the used columns has the same name as another column.
void check_names_differ(const CsvText& text, const CsvRow& header, std::span<const std::size_t> used);

}  // namespace plexaura
