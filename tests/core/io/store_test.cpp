#include "core/io/store.h"

#include <doctest/doctest.h>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <thread>

#include "core/faulty_store.h"
#include "core/io/read_whole.h"
#include "core/memory_store.h"
#include "core/temporary_folder.h"

using namespace shw;

namespace {

Bytes filled_with(std::size_t count, int value) {
  return Bytes(count, static_cast<std::byte>(value));
}

// Four threads write every fourth block of one file.
void write_in_threads(Store& store, const std::string& path) {
  constexpr std::size_t kBlock = 1000, kBlocks = 64;
  auto folder = store.make_folder(path);
  REQUIRE(folder.has_value());
  auto file = (*folder)->create_file("f");
  REQUIRE(file.has_value());
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = t; i < kBlocks; i += 4) {
        Bytes block = filled_with(kBlock, static_cast<int>(i));
        failed += !(*file)->write_at(i * kBlock, block).has_value();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(failed == 0);
  REQUIRE((*file)->finish(kBlock * kBlocks + 5));
  CHECK_FALSE((*file)->finish(1));
  auto source = store.read_folder(path).value()->open("f");
  REQUIRE(source.has_value());
  auto all = read_bytes(**source, 0, (*source)->size());
  REQUIRE(all.has_value());
  Bytes expected;
  for (std::size_t i = 0; i < kBlocks; ++i) {
    Bytes block = filled_with(kBlock, static_cast<int>(i));
    expected.insert(expected.end(), block.begin(), block.end());
  }
  expected.resize(expected.size() + 5);
  CHECK(*all == expected);
}

}  // namespace

TEST_CASE("several threads write one file, each its own bytes") {
  TemporaryFolder folder;
  write_in_threads(posix_store(), folder / "out");
  MemoryStore memory;
  write_in_threads(memory, "/out");
  FaultyStore asked(memory, [](const std::string&, const std::string&) { return std::nullopt; });
  write_in_threads(asked, "/other");
}

TEST_CASE("several threads read and map one file at once") {
  TemporaryFolder folder;
  std::string text(1 << 20, 'x');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>('a' + i % 26);
  put(folder / "f", text);
  auto source = posix_store().read_folder(folder.path()).value()->open("f");
  REQUIRE(source.has_value());
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t at = t * 1000; at + 4096 < text.size(); at += 50'000) {
        Bytes part(4096);
        wrong += !(*source)->read(at, part).has_value();
        BytesView map = (*source)->mapped();
        wrong += map.size() != text.size() ||
                 !std::equal(part.begin(), part.end(), map.begin() + static_cast<long>(at));
        (*source)->forget(at, 4096);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("a store in memory forgets what was not made durable") {
  using Survives = MemoryStore::Survives;
  for (Survives survives : {Survives::kOnlySynced, Survives::kNames}) {
    MemoryStore store;
    store.put("/a/old", filled_with(3, 1));
    auto folder = store.edit_folder("/a");
    REQUIRE(folder.has_value());
    auto kept = (*folder)->create("sub/kept");
    REQUIRE(kept.has_value());
    REQUIRE((*kept)->write(filled_with(3, 2)));
    REQUIRE((*kept)->finish());
    REQUIRE((*folder)->sync());
    auto half = (*folder)->create("half");
    REQUIRE(half.has_value());
    REQUIRE((*half)->write(filled_with(3, 3)));
    REQUIRE((*folder)->rename("old", "new"));
    store.cut_power(survives);
    bool names = survives == Survives::kNames;
    CHECK(store.get("/a/sub/kept") == filled_with(3, 2));
    CHECK(store.get("/a/half") == (names ? std::optional<Bytes>(Bytes{}) : std::nullopt));
    CHECK(store.get(names ? "/a/new" : "/a/old") == filled_with(3, 1));
    CHECK_FALSE(store.exists(names ? "/a/old" : "/a/new"));
  }
}

TEST_CASE("a folder in memory is published once, under a name that nothing has") {
  MemoryStore store;
  store.put("/taken/f", filled_with(1, 1));
  REQUIRE(store.make_folder("/x.partial-1").has_value());
  CHECK_FALSE(store.make_folder("/x.partial-1").has_value());
  CHECK_FALSE(store.publish("/x.partial-1", "/taken").has_value());
  CHECK_FALSE(store.discard("/taken", ".partial-").has_value());
  CHECK(store.publish("/x.partial-1", "/x").has_value());
  CHECK(store.exists("/x"));
  CHECK_FALSE(store.exists("/x.partial-1"));
  auto folder = store.edit_folder("/x");
  REQUIRE(folder.has_value());
  CHECK_FALSE((*folder)->create("../y").has_value());
  CHECK_FALSE((*folder)->copy_whole_file_in("/nothing", "y", nullptr).has_value());
}

TEST_CASE("a finished folder takes the name of an empty folder, and of nothing else") {
  TemporaryFolder folder;
  Store& store = posix_store();
  const auto published = [&](const std::string& name) {
    auto made = store.make_folder(folder / "new.partial-1");
    REQUIRE(made.has_value());
    REQUIRE(write_text(**made, "f", "1"));
    const bool is_free = store.is_free_for_folder(folder / name);
    const Status status = store.publish(folder / "new.partial-1", folder / name);
    CHECK(status.has_value() == is_free);
    if (!status) REQUIRE(store.discard(folder / "new.partial-1", ".partial-"));
    return is_free;
  };
  std::filesystem::create_directory(folder / "empty");
  std::filesystem::create_directory(folder / "full");
  std::filesystem::create_directory_symlink("empty", folder / "link");
  put(folder / "full/g", "2");
  put(folder / "file", "3");
  CHECK_FALSE(published("full"));
  CHECK_FALSE(published("file"));
  CHECK_FALSE(published("link"));
  CHECK(published("empty"));
  CHECK(store.names(folder / "empty") == std::vector<std::string>{"f"});
  CHECK_FALSE(published("empty"));
  CHECK(published("other"));
}

TEST_CASE("a text that the user names may come through a pipe, up to the limit") {
  int ends[2] = {};
  REQUIRE(::pipe(ends) == 0);
  const std::string path = "/dev/fd/" + std::to_string(ends[0]);
  std::thread writer([&] {
    const std::string text(100'000, 'x');
    CHECK(::write(ends[1], text.data(), text.size()) == 100'000);
    ::close(ends[1]);
  });
  CHECK(read_whole_text(path) == std::string(100'000, 'x'));
  writer.join();
  CHECK(read_whole_text(path) == "");
  ::close(ends[0]);
  REQUIRE(::pipe(ends) == 0);
  CHECK(::write(ends[1], "12345", 5) == 5);
  ::close(ends[1]);
  const auto refused = read_whole_text("/dev/fd/" + std::to_string(ends[0]), 4);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().kind == ErrorKind::kDamaged);
  ::close(ends[0]);
}

TEST_CASE("what is decoded is in files that have no name and leave nothing") {
  TemporaryFolder on_disk;
  MemoryStore in_memory;
  REQUIRE(in_memory.make_folder("/made").has_value());
  FaultyStore faulty(in_memory, [](const auto&, const auto&) { return std::nullopt; });
  REQUIRE(posix_store().make_folder(on_disk / "made").has_value());
  const std::pair<Store*, std::string> kinds[] = {
      {&posix_store(), on_disk / "made"}, {&in_memory, "/made"}, {&faulty, "/made"}};
  for (const auto& [store, path] : kinds) {
    auto folder = store->edit_folder(path);
    REQUIRE(folder.has_value());
    auto one = (*folder)->create_scratch(), other = (*folder)->create_scratch();
    REQUIRE(one.has_value());
    REQUIRE(other.has_value());
    const Bytes bytes = filled_with(100'000, 7);
    REQUIRE((*one)->write_at(50'000, bytes).has_value());
    REQUIRE((*one)->write_at(0, filled_with(50'000, 3)).has_value());
    REQUIRE((*other)->write_at(0, filled_with(10, 1)).has_value());
    CHECK((*one)->size() == 150'000);
    CHECK((*other)->size() == 10);
    Bytes read(100'000);
    REQUIRE((*one)->read(0, read).has_value());
    CHECK(read[49'999] == std::byte{3});
    CHECK(read[50'000] == std::byte{7});
    auto beyond = (*one)->read(149'999, std::span(read).first(2));
    REQUIRE_FALSE(beyond.has_value());
    CHECK(beyond.error().kind == ErrorKind::kDamaged);
    CHECK(store->read_folder(path).value()->list()->empty());
  }
  CHECK(in_memory.scratch().now == 0);
  CHECK(in_memory.scratch().most == 150'010);
}
