#pragma once

#include <string>

namespace plexaura {

// Returns several lines for --version: this build, compiler, oneDNN, MPI, libsodium, processor.
std::string version_text();

// Returns the git commit of this build, such as "0f2a4b6c8d9e". If there were uncommitted changes, a hash of
// them follows: "0f2a4b6c8d9e+01234567". Returns an empty text if the program was not built from a checkout.
std::string source_revision();

// Returns a text that must be equal on all ranks of a run: version, revision, build type, compiler, oneDNN,
// MPI.
std::string build_id();

}  // namespace plexaura
