#pragma once

#include <string>
#include <system_error>

namespace plexaura {

// Functions for the cells of a table, used by the files that read tables.

// Shortens text of a user's file for an error.
std::string shortened(const std::string& text);

// Reads the whole of `text` as a finite number. Returns invalid_argument if it is none, and
// result_out_of_range for a number that float32 rounds to 0 or to infinity.
std::errc parse_number(const std::string& text, double& value);
bool is_number(const std::string& text);

// True if a label is a word that programs write for a missing value: "NA", "nan", "None", "?" ...
bool means_missing(const std::string& label);

}  // namespace plexaura
