#include <algorithm>

#include "core/io/owner.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/io/place.h"
#include "core/io/source.h"
#include "core/io/store.h"
#include "core/temporary_folder.h"

using namespace shw;

namespace {

// What a child wrote about itself before it ended; it is waited for, so that its pid is free.
std::string dead_process() {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  pid_t child = ::fork();
  if (child == 0) {
    std::string text = this_process();
    ssize_t written = ::write(ends[1], text.data(), text.size());
    ::_exit(written == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  ::close(ends[1]);
  std::string text(4096, '\0');
  ssize_t length = ::read(ends[0], text.data(), text.size());
  ::close(ends[0]);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
  return text;
}

std::string with_line(std::string text, int line, const std::string& value) {
  std::size_t at = 0;
  for (int i = 0; i < line; ++i) at = text.find('\n', at) + 1;
  return text.replace(at, text.find('\n', at) - at, value);
}

}  // namespace

TEST_CASE(
    "a process that ended here is dead, one that runs, or ran elsewhere, is not known to be") {
  std::string dead = dead_process(), alive = this_process();
  CHECK(is_dead_process(dead));
  CHECK_FALSE(is_dead_process(alive));
  CHECK_FALSE(is_dead_process(with_line(dead, 0, "another-host")));
  CHECK_FALSE(is_dead_process(with_line(dead, 1, "another boot")));
  CHECK_FALSE(is_dead_process(with_line(dead, 2, "pid:[1]")));
  // The pid runs again, as another process.
  CHECK(is_dead_process(with_line(alive, 4, "1")));
  for (const char* text : {"", "\n\n\n\n\n", "one line", "a\nb\nc\nd\ne\n"})
    CHECK_FALSE(is_dead_process(text));
  for (const char* pid : {"0", "-1", "99999999999999999999", "1x", ""})
    CHECK_FALSE(is_dead_process(with_line(dead, 3, pid)));
}

TEST_CASE("only what a dead process of this machine left is swept") {
  TemporaryFolder folder;
  auto make = [&](const std::string& name, const std::string& owner) {
    std::filesystem::create_directories(folder / name + "/sub");
    put(folder / name + "/sub/__0_0.distcp", "data");
    if (!owner.empty()) put(folder / name + "/" + kOwnerFile, owner);
  };
  std::string dead = dead_process();
  make("out.shardwright-partial-1", dead);
  make("other.shardwright-partial-2", dead);
  make("out.shardwright-partial-3", this_process());
  make("out.shardwright-partial-4", "");
  make("out.shardwright-partial-5", with_line(dead, 0, "another-host"));
  make("innocent", dead);
  std::filesystem::create_directory_symlink(folder / "innocent",
                                            folder / "link.shardwright-partial-6");
  sweep_abandoned(posix_store(), folder / "out", kPartialMark);
  for (int gone : {1, 2}) {
    CHECK_FALSE(posix_store().exists(folder / (gone == 1 ? "out" : "other") +
                                     ".shardwright-partial-" + std::to_string(gone)));
  }
  for (int stays : {3, 4, 5})
    CHECK(posix_store().exists(folder / "out.shardwright-partial-" + std::to_string(stays)));
  CHECK(posix_store().exists(folder / "innocent/sub/__0_0.distcp"));
  CHECK(posix_store().exists(folder / "link.shardwright-partial-6"));
}

TEST_CASE("what a repair is still making is no part of a folder that is listed") {
  TemporaryFolder folder;
  std::filesystem::create_directories(folder / "a.shardwright-partial-7/below");
  put(folder / "a.shardwright-partial-7/.metadata", "x");
  put(folder / "a.shardwright-partial-7/below/__0_0.distcp", "x");
  put(folder / "kept", "x");
  auto directory = open_directory(folder.path());
  REQUIRE(directory.has_value());
  auto entries = (*directory)->list();
  REQUIRE(entries.has_value());
  REQUIRE(entries->size() == 1);
  CHECK((*entries)[0].path == "kept");
  // Opened itself, it is a folder like any other.
  auto partial = open_directory(folder / "a.shardwright-partial-7");
  REQUIRE(partial.has_value());
  CHECK((*partial)->list()->size() == 2);
}
