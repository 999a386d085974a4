// A fake library libcuda.so.1 of a machine without a GPU. Environment variables set its version
// (FAKE_DRIVER_VERSION) and the error that cuInit() returns (FAKE_DRIVER_INIT).

#include <cstdlib>
#include <string_view>

#define DRIVER_FUNCTION extern "C" __attribute__((visibility("default"))) int

namespace {

constexpr int not_supported = 801;

int number(const char* variable) {
  const char* text = std::getenv(variable);
  return text == nullptr ? 0 : std::atoi(text);
}

int any_other() { return not_supported; }

template <class Function>
void* address_of(Function* function) {
  return reinterpret_cast<void*>(function);
}

}  // namespace

DRIVER_FUNCTION cuDriverGetVersion(int* version) {
  *version = number("FAKE_DRIVER_VERSION");
  return 0;
}

DRIVER_FUNCTION cuInit(unsigned) { return number("FAKE_DRIVER_INIT"); }

DRIVER_FUNCTION cuGetExportTable(const void**, const void*) { return not_supported; }

DRIVER_FUNCTION cuGetProcAddress_v2(const char* name, void** function, int, unsigned long, int* found) {
  const std::string_view wanted(name);
  if (wanted == "cuDriverGetVersion")
    *function = address_of(cuDriverGetVersion);
  else if (wanted == "cuInit")
    *function = address_of(cuInit);
  else if (wanted == "cuGetExportTable")
    *function = address_of(cuGetExportTable);
  else if (wanted == "cuGetProcAddress")
    *function = address_of(cuGetProcAddress_v2);
  else
    *function = address_of(any_other);
  if (found != nullptr) *found = 0;
  return 0;
}

DRIVER_FUNCTION cuGetProcAddress(const char* name, void** function, int version, unsigned long flags) {
  return cuGetProcAddress_v2(name, function, version, flags, nullptr);
}
