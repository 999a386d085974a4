#pragma once

#include <set>
#include <string>
#include <system_error>
#include <vector>

namespace plexaura {

// Functions for the cells of a table, used by the files that read tables.

// Shortens text of a user's file for an error.
std::string shortened(const std::string& text);

// Lists names for an error, at most 20 of them.
std::string list_of(const std::vector<std::string>& names);

// Returns names in the order of classes: as numbers if all are whole numbers, otherwise as text.
std::vector<std::string> sorted_names(const std::set<std::string>& found);

// Reads the whole of `text` as a finite number. Returns invalid_argument if it is none, and
// result_out_of_range for a number that float32 rounds to 0 or to infinity.
std::errc parse_number(const std::string& text, double& value);
bool is_number(const std::string& text);

// True if a label is a word that programs write for a missing value: "NA", "nan", "None", "?" ...
bool means_missing(const std::string& label);

}  // namespace plexaura
