#include "core/io/remote/remote_directory.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>

using namespace shw;

namespace {

// Files in memory that count requests.
class CountingFiles final : public RemoteFiles {
 public:
  struct Counts {
    std::size_t calls = 0, ranges = 0;
    std::uint64_t bytes = 0;
    bool fails = false, slow = false;
  };
  CountingFiles(std::map<std::string, Bytes> files, Counts& counts)
      : files_(std::move(files)), counts_(counts) {}
  bool lists_all() const override { return true; }
  Result<std::vector<RemoteFile>> list(std::size_t) override {
    std::vector<RemoteFile> listed;
    for (const auto& [path, bytes] : files_) listed.push_back({path, bytes.size()});
    return listed;
  }
  Result<std::optional<RemoteFile>> find(const std::string&) override { return std::nullopt; }
  Status read(std::span<const RemoteRange> ranges) override {
    if (counts_.slow) std::this_thread::sleep_for(std::chrono::milliseconds(30));
    std::lock_guard lock(guard_);
    ++counts_.calls;
    for (const RemoteRange& range : ranges) {
      ++counts_.ranges;
      counts_.bytes += range.out.size();
      if (counts_.fails) return fail(ErrorKind::kIo, "no line", {range.file->path});
      const Bytes& bytes = files_.at(range.file->path);
      REQUIRE(range.offset + range.out.size() <= bytes.size());
      std::memcpy(range.out.data(), bytes.data() + range.offset, range.out.size());
    }
    return {};
  }

 private:
  std::mutex guard_;
  std::map<std::string, Bytes> files_;
  Counts& counts_;
};

Bytes counted_bytes(std::size_t size) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 251);
  return bytes;
}

std::shared_ptr<const RemoteDirectory> opened_with(std::map<std::string, Bytes> files,
                                                   CountingFiles::Counts& counts) {
  auto directory =
      remote_directory("test://place", std::make_unique<CountingFiles>(std::move(files), counts));
  REQUIRE(directory);
  return *directory;
}

}  // namespace

TEST_CASE("remote directory: names that leave the place are left out") {
  CountingFiles::Counts counts;
  auto directory =
      opened_with({{"a/b.bin", {}}, {"../x", {}}, {"/etc/passwd", {}}, {"c//d", {}}}, counts);
  auto entries = directory->list();
  REQUIRE(entries);
  REQUIRE(entries->size() == 1);
  CHECK(entries->front().path == "a/b.bin");
  CHECK(directory->stat("a").kind == EntryKind::kDirectory);
  CHECK(directory->stat("../x").kind == EntryKind::kMissing);
  CHECK(!directory->open("../x"));
  CHECK(!directory->list(0));
}

TEST_CASE("remote directory: every range is what is there") {
  CountingFiles::Counts counts;
  const Bytes all = counted_bytes(3 * kRemoteBlock + 17);
  auto directory = opened_with({{"f", all}}, counts);
  auto source = directory->open("f");
  REQUIRE(source);
  for (std::uint64_t offset :
       {std::uint64_t{0}, kRemoteBlock - 1, kRemoteBlock, 2 * kRemoteBlock + 5}) {
    for (std::size_t length : {std::size_t{1}, std::size_t{100}, std::size_t{kRemoteBlock + 2}}) {
      if (offset + length > all.size()) continue;
      Bytes out(length);
      REQUIRE((*source)->read(offset, out));
      CHECK(same_bytes(out, BytesView(all).subspan(offset, length)));
    }
  }
  Bytes beyond(2);
  auto read = (*source)->read(all.size() - 1, beyond);
  REQUIRE(!read);
  CHECK(read.error().kind == ErrorKind::kDamaged);
}

TEST_CASE("remote directory: what was read is not asked for again") {
  CountingFiles::Counts counts;
  auto directory = opened_with({{"f", counted_bytes(kRemoteBlock)}}, counts);
  auto source = directory->open("f");
  REQUIRE(source);
  Bytes out(8);
  REQUIRE((*source)->read(0, out));
  const std::size_t before = counts.ranges;
  for (std::uint64_t at = 8; at < 4000; at += 8) REQUIRE((*source)->read(at, out));
  CHECK(counts.ranges == before);
}

TEST_CASE("remote directory: what several threads need at once is asked for once") {
  CountingFiles::Counts counts;
  counts.slow = true;
  const Bytes all = counted_bytes(6 * kRemoteBlock);
  auto directory = opened_with({{"f", all}}, counts);
  auto source = directory->open("f");
  REQUIRE(source);
  std::atomic<int> same{0};
  std::vector<std::thread> threads;
  for (std::uint64_t i = 0; i < 8; ++i)
    threads.emplace_back([&, at = 2 * kRemoteBlock + i * 16] {
      Bytes out(kRemoteBlock);
      if ((*source)->read(at, out) && same_bytes(out, BytesView(all).subspan(at, out.size())))
        ++same;
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(same == 8);
  CHECK(counts.bytes <= 4 * kRemoteBlock);
}

TEST_CASE("remote directory: where the line fails each reader is reported, and none waits") {
  CountingFiles::Counts counts;
  counts.slow = counts.fails = true;
  auto directory = opened_with({{"f", counted_bytes(6 * kRemoteBlock)}}, counts);
  auto source = directory->open("f");
  REQUIRE(source);
  std::atomic<int> told{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      Bytes out(16);
      if (!(*source)->read(2 * kRemoteBlock, out)) ++told;
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(told == 4);
}

TEST_CASE("remote directory: a reader that goes on is read ahead for") {
  CountingFiles::Counts counts;
  const std::size_t size = 64 * kRemoteBlock;
  auto directory = opened_with({{"f", counted_bytes(size)}}, counts);
  auto source = directory->open("f");
  REQUIRE(source);
  Bytes out(4096);
  for (std::uint64_t at = 0; at < size; at += out.size()) REQUIRE((*source)->read(at, out));
  CHECK(counts.calls <= 8);
  CHECK(counts.bytes == size);
}

TEST_CASE("remote directory: heads of many shards come together") {
  CountingFiles::Counts counts;
  std::map<std::string, Bytes> files;
  for (int i = 100; i < 163; ++i)
    files["model-" + std::to_string(i) + ".safetensors"] = counted_bytes(3 * kRemoteBlock);
  const auto names = files;
  auto directory = opened_with(std::move(files), counts);
  Bytes out(8);
  for (const auto& [name, bytes] : names) {
    auto source = directory->open(name);
    REQUIRE(source);
    REQUIRE((*source)->read(0, out));
  }
  CHECK(counts.calls <= 4);
}

TEST_CASE("remote directory: an error of the line is not an empty file") {
  CountingFiles::Counts counts;
  auto directory = opened_with({{"f", counted_bytes(100)}}, counts);
  auto source = directory->open("f");
  REQUIRE(source);
  counts.fails = true;
  Bytes out(8);
  CHECK(!(*source)->read(0, out));
  counts.fails = false;
  CHECK((*source)->read(0, out));
}

TEST_CASE("remote directory: prefetched ranges are read without another request") {
  CountingFiles::Counts counts;
  std::map<std::string, Bytes> files;
  std::vector<PrefetchRange> ranges = {
      {"../x", 0, 10}, {"absent", 0, 10}, {"short", 0, 900'000'000}};
  files["short"] = counted_bytes(100);
  for (int i = 0; i < 300; ++i) {
    const std::string name = "shard-" + std::to_string(i);
    files[name] = counted_bytes(2 * kRemoteBlock + 5);
    ranges.push_back({name, 0, kRemoteBlock + 1});
  }
  const Bytes all = files["shard-0"];
  auto directory = opened_with(std::move(files), counts);
  directory->prefetch(ranges);
  CHECK(counts.calls == 2);  // 301 files, 256 at once
  CHECK(counts.bytes == 300 * 2 * kRemoteBlock + 100);
  for (int i = 0; i < 300; ++i) {
    auto source = directory->open("shard-" + std::to_string(i));
    REQUIRE(source);
    Bytes out(kRemoteBlock);
    REQUIRE((*source)->read(100, out));
    CHECK(same_bytes(out, BytesView(all).subspan(100, out.size())));
  }
  CHECK(counts.calls == 2);
  directory->prefetch(ranges);
  CHECK(counts.calls == 2);
}

TEST_CASE("remote directory: a prefetch that fails is recognised by the read") {
  CountingFiles::Counts counts;
  auto directory = opened_with({{"f", counted_bytes(100)}}, counts);
  counts.fails = true;
  directory->prefetch(std::vector<PrefetchRange>{{"f", 0, 100}});
  Bytes out(8);
  auto source = directory->open("f");
  REQUIRE(source);
  CHECK(!(*source)->read(0, out));
}
