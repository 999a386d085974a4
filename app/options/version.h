#pragma once

#include <string>

namespace plexaura {

// Returns several lines for --version: this build, compiler, oneDNN, MPI, processor.
std::string version_text();

// Returns the git commit of this build, "0f2a4b6c8d9e", followed by a hash of uncommitted changes if there
// were any, "0f2a4b6c8d9e+01234567"; empty if it was not built from a checkout.
std::string source_revision();

// Returns a text that must be equal on all ranks of a run: version, revision, build type, compiler, oneDNN,
// MPI.
std::string build_id();

}  // namespace plexaura
