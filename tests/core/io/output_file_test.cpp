#include "core/io/output_file.h"

#include <doctest/doctest.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>
#include <thread>

#include "core/io/list_names.h"
#include "core/io/permissions.h"
#include "core/io/publish.h"
#include "core/io/source.h"
#include "core/io/store.h"
#include "core/temporary_folder.h"

using namespace shw;
namespace fs = std::filesystem;

TEST_CASE("output file: a pipe and a device are written through and stay what they are") {
  TemporaryFolder folder;
  const std::string pipe = folder / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  std::string read;
  std::thread reader([&] { read = contents(pipe); });
  CHECK(write_output_file(pipe, "a report"));
  reader.join();
  CHECK(read == "a report");
  CHECK(fs::is_fifo(pipe));
  fs::create_symlink("/dev/null", folder / "null");
  for (const std::string& path : {std::string("/dev/null"), folder / "null"}) {
    CHECK(output_target(path)->is_special);
    CHECK(write_output_file(path, "a report"));
  }
  CHECK(fs::is_symlink(folder / "null"));
  CHECK(fs::is_character_file("/dev/null"));
  // A file that a library writes itself never replaces these.
  TempFile half_made(pipe);
  put(half_made.path(), "x");
  CHECK_FALSE(half_made.replace().has_value());
  CHECK(fs::is_fifo(pipe));
}

TEST_CASE("output file: what is open in this process is meant by its name below /proc") {
  TemporaryFolder folder;
  const int fd = ::open((folder / "open").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  REQUIRE(fd >= 0);
  REQUIRE(::write(fd, "before ", 7) == 7);
  CHECK(write_output_file("/proc/self/fd/" + std::to_string(fd), "after"));
  ::close(fd);
  CHECK(contents(folder / "open") == "before after");
}

TEST_CASE(
    "output file: a link is followed, and a file keeps its rights and leaves nothing next to") {
  TemporaryFolder folder;
  fs::create_directory(folder / "below");
  put(folder / "below/real", "old");
  ::chmod((folder / "below/real").c_str(), 0600);
  fs::create_symlink("below/real", folder / "link");
  fs::create_symlink("below/new", folder / "to-come");
  CHECK(write_output_file(folder / "link", "new"));
  CHECK(write_output_file(folder / "to-come", "first"));
  CHECK(fs::is_symlink(folder / "link"));
  CHECK(contents(folder / "below/real") == "new");
  CHECK(contents(folder / "below/new") == "first");
  CHECK((static_cast<unsigned>(fs::status(folder / "below/real").permissions()) & 0777) == 0600);
  CHECK(std::distance(fs::directory_iterator(folder / "below"), fs::directory_iterator()) == 2);
  fs::create_symlink("b", folder / "a");
  fs::create_symlink("a", folder / "b");
  CHECK_FALSE(write_output_file(folder / "a", "x"));
  CHECK_FALSE(write_output_file(folder.path(), "x"));
  // The longest possible name.
  const std::string longest = folder / std::string(255, 'n');
  CHECK(write_output_file(longest, "x"));
  CHECK(contents(longest) == "x");
}

TEST_CASE("names of a folder: all of them, and an error where it cannot be listed") {
  TemporaryFolder folder;
  put(folder / "a", "");
  put(folder / "b", "");
  CHECK(names_in(folder.path())->size() == 2);
  CHECK_FALSE(names_in(folder / "a").has_value());
  const int write_only = ::open((folder / "a").c_str(), O_WRONLY | O_CLOEXEC);
  CHECK_FALSE(names_in(write_only, "a").has_value());
  ::close(write_only);
}

TEST_CASE("a link out of its folder: a hub's cache is one folder, anything else is outside") {
  TemporaryFolder folder;
  for (const char* name : {"hub/blobs", "hub/snapshots/1", "other"})
    fs::create_directories(folder / name);
  put(folder / "hub/blobs/77", "x");
  put(folder / "hub/secret", "x");
  put(folder / "hub/snapshots/1/here", "x");
  const std::string snapshot = folder / "hub/snapshots/1";
  fs::create_symlink("../../blobs/77", snapshot + "/cached");
  fs::create_symlink("../../secret", snapshot + "/out");
  fs::create_symlink("here", snapshot + "/in");
  CHECK_FALSE(points_outside(snapshot, "cached"));
  CHECK_FALSE(points_outside(snapshot, "in"));
  CHECK_FALSE(points_outside(snapshot, "here"));
  CHECK(points_outside(snapshot, "out"));
}

TEST_CASE("bytes in memory: a file that is cut while it is read stays whole there") {
  TemporaryFolder folder;
  put(folder / "f", std::string(100'000, 'x'));
  auto source = open_file(folder / "f", "f");
  REQUIRE(source.has_value());
  const BytesView held = (*source)->mapped();
  REQUIRE(held.size() == 100'000);
  fs::resize_file(folder / "f", 10);
  (*source)->forget(0, 100'000);
  CHECK(held[0] == std::byte{'x'});
  CHECK(held[99'999] == std::byte{'x'});
  // A file truncated after it was opened is noticed by its reader.
  put(folder / "g", std::string(100'000, 'x'));
  auto cut = open_file(folder / "g", "g");
  fs::resize_file(folder / "g", 10);
  CHECK((*cut)->mapped().empty());
  CHECK_FALSE(read_bytes(**cut, 0, (*cut)->size()).has_value());
}
