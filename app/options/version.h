#pragma once

#include <string>

namespace plexaura {

// Several lines for --version: this build, compiler, oneDNN, MPI, processor.
std::string version_text();

// The git commit that was built, "0f2a4b6c8d9e", with a hash of what was changed since,
// "0f2a4b6c8d9e+01234567"; empty where it was built from no checkout.
std::string source_revision();

// What must be equal in all ranks of a run: version, revision, build type, compiler, oneDNN, MPI.
std::string build_id();

}  // namespace plexaura
