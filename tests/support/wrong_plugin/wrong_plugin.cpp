// A plugin that says it was built for another Plexaura. Includes nothing of ours: only the stamp may be
// looked at.

namespace {

struct Entry {
  const char* stamp;
  void (*open)();
};

constexpr Entry entry{"contract of long ago", nullptr};

}  // namespace

extern "C" __attribute__((visibility("default"))) const void* plexaura_plugin() { return &entry; }
