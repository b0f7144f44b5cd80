#include "core/io/store.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "core/faulty_store.h"
#include "core/temporary_folder.h"

using namespace shw;

namespace {

BytesView bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// 64 MiB long with 3 bytes of data at the front and 4 in the middle.
void make_sparse(const std::string& path) {
  int fd = ::open(path.c_str(), O_WRONLY | O_CREAT, 0640);
  CHECK(::pwrite(fd, "abc", 3, 0) == 3);
  CHECK(::pwrite(fd, "wxyz", 4, 32 << 20) == 4);
  CHECK(::ftruncate(fd, 64 << 20) == 0);
  const timespec times[2] = {{1'000'000'000, 0}, {1'234'567'890, 123'456'789}};
  CHECK(::futimens(fd, times) == 0);
  ::close(fd);
}

}  // namespace

TEST_CASE("a sink holds what was written, holes included") {
  TemporaryFolder folder;
  auto directory = posix_store().make_folder(folder / "out");
  REQUIRE(directory.has_value());
  auto sink = (*directory)->create("sub/file");
  REQUIRE(sink.has_value());
  std::string big(3 << 20, 'x');
  CHECK((*sink)->write(bytes_of("head")));
  CHECK((*sink)->write(bytes_of(big)));
  CHECK((*sink)->skip(5));
  CHECK((*sink)->write(bytes_of("tail")));
  CHECK((*sink)->skip(3));
  CHECK((*sink)->position() == 4 + big.size() + 5 + 4 + 3);
  CHECK((*sink)->finish());
  CHECK_FALSE((*sink)->finish());
  CHECK((*directory)->sync());
  CHECK(contents(folder / "out/sub/file") ==
        "head" + big + std::string(5, '\0') + "tail" + std::string(3, '\0'));
}

TEST_CASE("a sink never replaces a file and never leaves its directory") {
  TemporaryFolder folder;
  put(folder / "there", "old");
  auto directory = posix_store().edit_folder(folder.path());
  REQUIRE(directory.has_value());
  CHECK_FALSE((*directory)->create("there"));
  CHECK_FALSE((*directory)->create("../there"));
  CHECK_FALSE((*directory)->create("/tmp/there"));
  CHECK_FALSE((*directory)->copy_whole_file_in(folder / "there", "there", nullptr));
  CHECK_FALSE((*directory)->rename("there", "../elsewhere"));
  CHECK_FALSE((*directory)->remove("../there"));
  CHECK(contents(folder / "there") == "old");
  CHECK_FALSE(posix_store().make_folder(folder.path()));
}

TEST_CASE("a copy keeps bytes, holes, mode and time, and is not a hard link") {
  TemporaryFolder folder;
  make_sparse(folder / "sparse");
  auto directory = posix_store().make_folder(folder / "out");
  REQUIRE(directory.has_value());
  Progress progress;
  REQUIRE((*directory)->copy_whole_file_in(folder / "sparse", "copy", &progress));
  CHECK(progress.done == 64u << 20);
  struct stat from {
  }, to{};
  CHECK(::stat((folder / "sparse").c_str(), &from) == 0);
  CHECK(::stat((folder / "out/copy").c_str(), &to) == 0);
  CHECK(to.st_size == from.st_size);
  CHECK(to.st_mode == from.st_mode);
  CHECK(to.st_mtim.tv_sec == from.st_mtim.tv_sec);
  CHECK(to.st_mtim.tv_nsec == from.st_mtim.tv_nsec);
  CHECK(to.st_ino != from.st_ino);
  CHECK(to.st_blocks <= from.st_blocks + 64);
  CHECK(contents(folder / "out/copy") == contents(folder / "sparse"));
}

TEST_CASE("who watches a copy sees every byte of it from front to back") {
  TemporaryFolder folder;
  make_sparse(folder / "sparse");
  auto directory = posix_store().make_folder(folder / "out");
  REQUIRE(directory.has_value());
  std::string seen;
  ExtentVisitor passing;
  passing.bytes = [&](BytesView bytes) -> Status {
    seen.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return {};
  };
  passing.hole = [&](std::uint64_t length) -> Status {
    seen.append(static_cast<std::size_t>(length), '\0');
    return {};
  };
  Progress progress;
  auto saw = (*directory)->copy_file_durably(folder / "sparse", "copy", &passing, &progress);
  REQUIRE(saw.has_value());
  CHECK(*saw != shares_bytes(folder));
  CHECK(seen == (*saw ? contents(folder / "sparse") : ""));
  CHECK(contents(folder / "out/copy") == contents(folder / "sparse"));
  CHECK(progress.done == 64u << 20);
  struct stat from {
  }, to{};
  CHECK(::stat((folder / "sparse").c_str(), &from) == 0);
  CHECK(::stat((folder / "out/copy").c_str(), &to) == 0);
  CHECK(to.st_blocks <= from.st_blocks + 64);
  passing.bytes = [](BytesView) -> Status { return fail(ErrorKind::kIo, "seen enough"); };
  auto stopped = (*directory)->copy_file_durably(folder / "sparse", "again", &passing, nullptr);
  if (*saw) CHECK_FALSE(stopped.has_value());
}

TEST_CASE("a cancelled copy stops and says so") {
  TemporaryFolder folder;
  put(folder / "source", "bytes");
  auto directory = posix_store().make_folder(folder / "out");
  REQUIRE(directory.has_value());
  Progress progress;
  progress.cancel();
  Status copied = (*directory)->copy_whole_file_in(folder / "source", "copy", &progress);
  REQUIRE_FALSE(copied.has_value());
  CHECK(copied.error().kind == ErrorKind::kCancelled);
}

TEST_CASE("publishing takes a free name and replaces nothing") {
  TemporaryFolder folder;
  REQUIRE(posix_store().make_folder(folder / "a.partial"));
  put(folder / "a.partial/x", "1");
  CHECK(posix_store().publish(folder / "a.partial", folder / "a/"));
  CHECK(contents(folder / "a/x") == "1");
  REQUIRE(posix_store().make_folder(folder / "b.partial"));
  CHECK_FALSE(posix_store().publish(folder / "b.partial", folder / "a"));
  CHECK(contents(folder / "a/x") == "1");
  CHECK(std::filesystem::exists(folder / "b.partial"));
}

TEST_CASE("only a directory with our mark is removed, and links in it are not followed") {
  TemporaryFolder folder;
  REQUIRE(posix_store().make_folder(folder / "keep"));
  put(folder / "keep/precious", "1");
  CHECK_FALSE(posix_store().discard(folder / "keep", ".partial-"));
  CHECK_FALSE(posix_store().discard(folder / "keep", ""));
  std::string ours = folder / "x.partial-7";
  REQUIRE(posix_store().make_folder(ours));
  std::filesystem::create_directories(ours + "/deep/er");
  put(ours + "/deep/er/file", "1");
  std::filesystem::create_directory_symlink(folder / "keep", ours + "/link");
  std::filesystem::create_symlink(folder / "keep/precious", ours + "/deep/link");
  CHECK(posix_store().discard(ours, ".partial-"));
  CHECK_FALSE(std::filesystem::exists(ours));
  CHECK(contents(folder / "keep/precious") == "1");
}

TEST_CASE("the faulty double stops at the step that was chosen") {
  TemporaryFolder folder;
  std::vector<std::string> steps;
  auto decide = [&](const std::string& step, const std::string& path) -> std::optional<Error> {
    steps.push_back(step + " " + path);
    if (step == "finish") return Error{ErrorKind::kIo, "no space left on device", {path}};
    return std::nullopt;
  };
  FaultyStore store(posix_store(), decide);
  auto directory = store.make_folder(folder / "out");
  REQUIRE(directory.has_value());
  auto sink = (*directory)->create("f");
  REQUIRE(sink.has_value());
  CHECK((*sink)->write(bytes_of("1")));
  Status finished = (*sink)->finish();
  REQUIRE_FALSE(finished.has_value());
  CHECK(finished.error().message == "no space left on device");
  CHECK(steps == std::vector<std::string>{"make directory " + (folder / "out"), "create f",
                                          "write f", "finish f"});
}
