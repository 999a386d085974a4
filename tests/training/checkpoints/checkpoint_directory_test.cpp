#include "training/checkpoints/checkpoint_directory.h"

#include <array>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"
#include "tests/training/tiny_store.h"
#include "training/checkpoints/checkpoint.h"

namespace plexaura::testing::checkpoint_directory_test {

namespace fs = std::filesystem;

namespace {

// Records, in order, the names that appear in a folder by renaming (+), and those that are renamed (~) or removed
// (-).
class Watch {
 public:
  explicit Watch(const fs::path& folder) : descriptor_(::inotify_init1(IN_NONBLOCK)) {
    ::inotify_add_watch(descriptor_, folder.c_str(), IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE);
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  ~Watch() { ::close(descriptor_); }

  std::string seen() const {
    alignas(inotify_event) std::array<char, 4096> buffer{};
    const ssize_t bytes = ::read(descriptor_, buffer.data(), buffer.size());
    std::string text;
    for (ssize_t at = 0; at < bytes;) {
      const auto* event = reinterpret_cast<const inotify_event*>(buffer.data() + at);
      const char sign = (event->mask & IN_DELETE) != 0 ? '-' : (event->mask & IN_MOVED_FROM) != 0 ? '~' : '+';
      text += sign + std::string(event->name) + ' ';
      at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
    }
    return text;
  }

 private:
  int descriptor_;
};

}  // namespace

TEST_CASE("the newest is read and older ones are removed") {
  const TemporaryFolder folder;
  for (const std::int64_t step : {9, 10, 1000000})
    save_checkpoint(folder.path(), TinyStore(static_cast<double>(step)).store, {.step = step}, 2);
  CHECK(folder.names() == "checkpoint-000010 checkpoint-1000000 ");
  TinyStore model(0);
  CHECK(load_checkpoint(folder.path(), model.store)->step == 1000000);
  CHECK(model.weight() == 1000000);
}

TEST_CASE("those that are held stay, but for later ones that an earlier run has left") {
  const TemporaryFolder folder;
  for (const std::int64_t step : {2, 5, 9})
    save_checkpoint(folder.path(), TinyStore(1).store, {.step = step}, 1, {2});
  CHECK(folder.names() == "checkpoint-000002 checkpoint-000009 ");
  save_checkpoint(folder.path(), TinyStore(1).store, {.step = 8}, 1, {9});
  CHECK(folder.names() == "checkpoint-000008 ");
}

TEST_CASE("the best checkpoint stays, and the link leads to it until another one is better") {
  const TemporaryFolder folder;
  const auto save = [&](std::int64_t step, std::int64_t best) {
    save_checkpoint(folder.path(), TinyStore(1).store,
                    {.step = step,
                     .epoch = step,
                     .goal = "min loss",
                     .best = {.epoch = best - 1, .step = best, .value = 0.5, .worse = step - best}});
  };
  save(1, 1);
  save(2, 1);
  save(3, 1);
  CHECK(folder.names() == "best checkpoint-000001 checkpoint-000003 ");
  CHECK(fs::read_symlink(folder / "best") == "checkpoint-000001");
  TinyStore model(0);
  const auto state = load_checkpoint(folder.path(), model.store);
  CHECK(state->goal == "min loss");
  CHECK(state->best == BestEpoch{.epoch = 0, .step = 1, .value = 0.5, .worse = 2});
  save(4, 4);
  CHECK(folder.names() == "best checkpoint-000004 ");
  CHECK(fs::read_symlink(folder / "best") == "checkpoint-000004");
  // Without a goal the link goes with the checkpoint that it led to.
  save_checkpoint(folder.path(), TinyStore(1).store, {.step = 5, .epoch = 4});
  CHECK(folder.names() == "checkpoint-000005 ");
}

TEST_CASE("a file at the place of the link to the best checkpoint is not removed") {
  const TemporaryFolder folder;
  folder.write("best", "mine");
  CHECK(user_error([&] { prepare_checkpoints(folder.path()); })
            .ends_with(
                "/best is at the place of the link to the best checkpoint; move it away, or name another "
                "folder in output.dir"));
  CHECK(is_reserved_in_checkpoints("best"));
}

TEST_CASE("a run that began anew is not hidden by what an earlier one left") {
  const TemporaryFolder folder;
  save_checkpoint(folder.path(), TinyStore(1).store, {.step = 900});
  save_checkpoint(folder.path(), TinyStore(2).store, {.step = 100});
  CHECK(folder.names() == "checkpoint-000100 ");
}

TEST_CASE("the others go when the new one has its name: whenever a run is killed, one is there") {
  const TemporaryFolder folder;
  for (const std::int64_t step : {50, 900})
    save_checkpoint(folder.path(), TinyStore(1).store, {.step = step}, 2);
  const Watch watch(folder.path());
  save_checkpoint(folder.path(), TinyStore(2).store, {.step = 100});
  CHECK(watch.seen() ==
        "~checkpoint.unfinished +checkpoint-000100 ~checkpoint-000050 +checkpoint.removed-000050 "
        "~checkpoint-000900 +checkpoint.removed-000900 -checkpoint.removed-000050 "
        "-checkpoint.removed-000900 ");
}

TEST_CASE("no checkpoint is removed under its name, so that a run killed meanwhile leaves only whole ones") {
  const TemporaryFolder folder;
  save_checkpoint(folder.path(), TinyStore(1).store, {.step = 5});
  const Watch watch(folder.path());
  save_checkpoint(folder.path(), TinyStore(2).store, {.step = 5});
  CHECK(watch.seen().find("-checkpoint-") == std::string::npos);
}

TEST_CASE("the next save removes what a run has left that was killed while it removed checkpoints") {
  const TemporaryFolder folder;
  fs::create_directory(folder / "checkpoint.removed-000012");
  write_text(folder / "checkpoint.removed-000012/state.safetensors", "the weights have gone");
  fs::create_directory(folder / "checkpoint.removed-000013");
  write_text(folder / "checkpoint.removed-000013/mine", "mine");
  CHECK(!newest_checkpoint(folder.path()));
  CHECK(is_reserved_in_checkpoints("checkpoint.removed-000012"));
  save_checkpoint(folder.path(), TinyStore(2).store, {.step = 5});
  CHECK(folder.names() == "checkpoint-000005 checkpoint.removed-000013 ");
}

TEST_CASE("a checkpoint of the same step is replaced, and leftovers of a killed writer go") {
  const TemporaryFolder folder;
  save_checkpoint(folder.path(), TinyStore(1).store, {.step = 5});
  fs::create_directory(folder / "checkpoint.unfinished");
  write_text(folder / "checkpoint.unfinished/weights.safetensors", "half of it");
  CHECK(newest_checkpoint(folder.path()) == folder / "checkpoint-000005");
  save_checkpoint(folder.path(), TinyStore(2).store, {.step = 5});
  CHECK(folder.names() == "checkpoint-000005 ");
  TinyStore model(0);
  load_checkpoint(folder.path(), model.store);
  CHECK(model.weight() == 2);
}

TEST_CASE("other folders are let alone") {
  const TemporaryFolder folder;
  for (const char* name : {"checkpoint-", "checkpoint-12x", "checkpoints", "mine"})
    fs::create_directory(folder / name);
  save_checkpoint(folder.path(), TinyStore(1).store, {.step = 5});
  CHECK(folder.names() == "checkpoint- checkpoint-000005 checkpoint-12x checkpoints mine ");
}

TEST_CASE("what Plexaura did not write is not removed: a save says so, or goes past it") {
  for (const char* foreign : {"checkpoint-000005", "checkpoint-000005/model.safetensors",
                              "checkpoint.unfinished/notes", "checkpoint-000005/state.safetensors/inside"}) {
    CAPTURE(foreign);
    const TemporaryFolder folder;
    fs::create_directories((folder / foreign).parent_path());
    write_text(folder / foreign, "mine");
    const auto says_so = [&](const std::string& text) {
      return text.find(" is not of a checkpoint of Plexaura and would be removed with 'checkpoint") !=
             std::string::npos;
    };
    CHECK(says_so(user_error([&] { prepare_checkpoints(folder.path()); })));
    CHECK(says_so(user_error([&] { save_checkpoint(folder.path(), TinyStore(1).store, {.step = 5}); })));
    CHECK(read_text(folder / foreign) == "mine");
  }
  const TemporaryFolder folder;
  fs::create_directory(folder / "checkpoint-000003");
  write_text(folder / "checkpoint-000003/model.safetensors", "mine");
  write_text(folder / "checkpoint-000009", "mine");
  save_checkpoint(folder.path(), TinyStore(1).store, {.step = 5});
  CHECK(folder.names() == "checkpoint-000003 checkpoint-000005 checkpoint-000009 ");
}

TEST_CASE("where nothing can be written is said at once") {
  const TemporaryFolder folder;
  write_text(folder / "file", "");
  const std::string expected = "cannot create " + (folder / "file/run").string() +
                               ": Not a directory; name a folder that can be written in output.dir";
  CHECK(user_error([&] { prepare_checkpoints(folder / "file/run"); }) == expected);
  CHECK(user_error([&] { save_checkpoint(folder / "file/run", TinyStore(1).store, {}); }) == expected);
}

TEST_CASE("a link to a folder that is not there is told so") {
  const TemporaryFolder folder;
  fs::create_symlink("nowhere", folder / "link");
  CHECK(user_error([&] { prepare_checkpoints(folder / "link"); }) ==
        "output.dir is " + (folder / "link").string() +
            ", a link to 'nowhere', which is not there; make that folder, or name another in output.dir");
  fs::create_directory(folder / "nowhere");
  prepare_checkpoints(folder / "link");
}

TEST_CASE("a checkpoint that lacks a file is refused, and the error names the file") {
  const TemporaryFolder folder;
  const fs::path checkpoint = folder / "checkpoint-000001";
  for (const char* name : {"weights.safetensors", "state.safetensors"}) {
    save_checkpoint(folder.path(), TinyStore(1).store, {.step = 1});
    fs::remove(checkpoint / name);
    TinyStore model(0);
    CHECK(user_error([&] { load_checkpoint(folder.path(), model.store); }) ==
          fmt::format("{} is not a complete checkpoint: {} is missing; copy it again, or move it away to "
                      "resume from an earlier one",
                      checkpoint.string(), name));
  }
}

}  // namespace plexaura::testing::checkpoint_directory_test
