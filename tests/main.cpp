#define DOCTEST_CONFIG_IMPLEMENT
#include <cstdlib>
#include <doctest/doctest.h>
#include <string>

// Adds the folder with the tests' backends, where no other program looks for plugins.
int main(int argc, char** argv) {
  const char* others = std::getenv("PLEXAURA_PLUGIN_PATH");
  const std::string path = std::string(PLEXAURA_TEST_PLUGINS) + ":" + (others == nullptr ? "" : others);
  setenv("PLEXAURA_PLUGIN_PATH", path.c_str(), 1);
  return doctest::Context(argc, argv).run();
}
