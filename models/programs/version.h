#pragma once

#include <string>

namespace plexaura {

// Several lines for --version: this build, compiler, oneDNN, MPI, processor.
std::string version_text();

// What must be equal in all ranks of a run: version, compiler and build type.
std::string build_id();

}  // namespace plexaura
