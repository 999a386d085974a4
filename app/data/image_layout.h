#pragma once

#include <filesystem>
#include <string>

#include "models/config/config.h"

namespace plexaura {

// Throws UserError where the folder that data.path names has no folder `train`, or `val` if there is to be validation.
void require_parts(const Section& data, const std::filesystem::path& path, bool validates);

// Where all images are of one class: what to do. They may lie in folders that were meant as classes.
std::string remedy_for_one_class(const std::filesystem::path& folder_of_class);

}  // namespace plexaura
