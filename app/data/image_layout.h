#pragma once

#include <filesystem>
#include <string>

#include "models/config/config.h"

namespace plexaura {

// Throws UserError if the folder data.path has no folder `train`, or no folder `val` although there is
// validation.
void require_parts(const Section& data, const std::filesystem::path& path, bool validates);

// Throws UserError if the folder data.path has folders for training and validation, such as `train` and `test`, which would be
// taken for classes.
void refuse_parts(const Section& data, const std::filesystem::path& path);

// Returns what to do if all images belong to one class: the classes may be folders within its folder.
std::string remedy_for_one_class(const std::filesystem::path& folder_of_class);

}  // namespace plexaura
