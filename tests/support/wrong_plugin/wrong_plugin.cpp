// A plugin that claims to be built for another version of Plexaura. It includes no header of this project,
// because only the stamp may be read.

namespace {

struct Entry {
  const char* stamp;
  void (*open)();
};

constexpr Entry entry{"contract of long ago", nullptr};

}  // namespace

extern "C" __attribute__((visibility("default"))) const void* plexaura_plugin() { return &entry; }
