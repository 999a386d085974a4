#pragma once

#include <string>
#include <system_error>

namespace plexaura {

// What the cells of a table may be, for the files that read tables.

// Foreign text in an error is not shown at any length.
std::string shortened(const std::string& text);

// Reads the whole of `text` as a finite number. invalid_argument for anything else, result_out_of_range for a
// number that float32 takes for 0 or for infinity.
std::errc parse_number(const std::string& text, double& value);
bool is_number(const std::string& text);

// Whether a label is one of the words that programs write where a value is missing: "NA", "nan", "None", "?" ...
bool means_missing(const std::string& label);

}  // namespace plexaura
