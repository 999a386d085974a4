// Sees the events of a rank before they reach the file of events. These are points for faults: the beginning
// and the end of each wait and phase, each step, and an error before it is printed. The function replaces
// that of libplexaura_core.so.

#include <dlfcn.h>
#include <fmt/format.h>

#include "core/base/events.h"
#include "tests/programs/faulty/faults.h"

namespace plexaura {

namespace {

// The open spans of this thread, the innermost last.
thread_local std::vector<std::string> spans;

std::string end_of_span() {
  if (spans.empty()) return "back";
  std::string name = "after " + spans.back();
  spans.pop_back();
  return name;
}

class WatchedEvents final : public EventSink {
 public:
  explicit WatchedEvents(EventSink& file) : file_(file) {}

  void event(EventKind kind, std::int64_t number, std::string_view text) noexcept override {
    file_.event(kind, number, text);
    faulty::Faults& faults = faulty::Faults::of_this_process();
    switch (kind) {
      case EventKind::data:
      case EventKind::phase:
      case EventKind::wait:
        faults.pass(spans.emplace_back(text));
        break;
      case EventKind::back:
        faults.pass(end_of_span());
        break;
      case EventKind::step:
        faults.pass(fmt::format("step {}", number));
        break;
      case EventKind::saved:
        faults.pass(fmt::format("saved {}", number));
        break;
      case EventKind::error:
        faults.pass("its own error");
        break;
      default:
        break;
    }
  }

 private:
  EventSink& file_;
};

}  // namespace

void send_events_to(EventSink* where) noexcept {
  static const auto real = reinterpret_cast<decltype(&send_events_to)>(
      dlsym(RTLD_NEXT, "_ZN8plexaura14send_events_toEPNS_9EventSinkE"));
  if (where == nullptr) return real(nullptr);
  static WatchedEvents watched(*where);
  real(&watched);
}

}  // namespace plexaura
