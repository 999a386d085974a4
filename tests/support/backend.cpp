#include "tests/support/backend.h"

#include <cstdlib>

#include "backends/registry.h"

namespace plexaura::testing {

Backend& test_backend() {
  static const std::unique_ptr<Backend> backend = [] {
    const char* name = std::getenv("PLEXAURA_BACKEND");
    return open_backend(name == nullptr ? "cpu" : name);
  }();
  return *backend;
}

bool is_default_backend() { return std::getenv("PLEXAURA_BACKEND") == nullptr; }

Backend& oracle() {
  static const std::unique_ptr<Backend> backend = open_backend("portable");
  return *backend;
}

}  // namespace plexaura::testing
