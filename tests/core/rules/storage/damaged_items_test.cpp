// A checkpoint of real torch, damaged in memory; each damage must give the right finding.
#include <doctest/doctest.h>

#include "core/formats/open.h"
#include "core/make_zip.h"
#include "core/rules/check.h"
#include "core/rules/on_fixtures.h"
#include "core/tensor/element_text.h"

using namespace shw;
using namespace shw::test;

namespace {

using Files = std::vector<std::pair<std::string, Bytes>>;

Files load(const char* name) {
  auto directory = open_directory(std::string(SHW_TEST_DATA) + "/torch-2.14/" + name + "/ckpt");
  REQUIRE(directory.has_value());
  Files files;
  auto entries = (*directory)->list();
  REQUIRE(entries.has_value());
  for (const Entry& entry : *entries) {
    auto source = (*directory)->open(entry.path);
    REQUIRE(source.has_value());
    files.emplace_back(entry.path, read_bytes(**source, 0, entry.size).value());
  }
  return files;
}

Bytes& file(Files& files, std::string_view path) {
  for (auto& [name, bytes] : files) {
    if (name == path) return bytes;
  }
  FAIL("no file " << path);
  return files.front().second;
}

CheckReport look(std::shared_ptr<const Directory> directory, Depth depth) {
  auto checkpoint = open_checkpoint(std::move(directory));
  REQUIRE(checkpoint.has_value());
  auto report = check(**checkpoint, CheckOptions{depth, nullptr, std::nullopt});
  REQUIRE(report.has_value());
  return *report;
}

// The first chunk with elements, and its item's header.
std::pair<ItemPlace, ItemHeader> first_item(const Files& files, std::string& path) {
  auto checkpoint = open_checkpoint(memory_directory("ckpt", files));
  REQUIRE(checkpoint.has_value());
  for (std::uint32_t i = 0; i < (*checkpoint)->chunk_count(); ++i) {
    auto header = read_item_header(**checkpoint, ChunkId{i});
    REQUIRE(header.has_value());
    if (header->payload_length == 0) continue;
    auto item = (*checkpoint)->item(ChunkId{i});
    path = (*checkpoint)->file(item->file).path;
    return {*item, *header};
  }
  FAIL("no item");
  return {};
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("a flipped payload byte is found by its checksum, at depth data alone") {
  Files files = load("healthy_fsdp");
  std::string path;
  auto [item, header] = first_item(files, path);
  file(files, path)[header.payload_offset] ^= std::byte{0x40};
  CHECK(rules_above_info(look(memory_directory("ckpt", files), Depth::kHeaders)).empty());
  auto report = look(memory_directory("ckpt", files), Depth::kData);
  CHECK(rules_above_info(report) == Names{"bad-record"});
  CHECK(report.findings.front().subjects.size() == 1);
  CHECK(report.findings.front().cause.find(path) != std::string::npos);
}

TEST_CASE("where one flipped bit explains a checksum its element is named with what it was") {
  Files files = load("healthy_fsdp");
  std::string path;
  auto [item, header] = first_item(files, path);
  const std::size_t size = size_of(header.dtype);
  REQUIRE(header.payload_length > 2 * size);
  std::byte* element = file(files, path).data() + header.payload_offset + size;
  const std::string before = element_text(header.dtype, {element, size}, 0);
  element[size - 1] ^= std::byte{0x40};
  const std::string now = element_text(header.dtype, {element, size}, 0);
  auto flipped_bits = [&] {
    const CheckReport report = look(memory_directory("ckpt", files), Depth::kData);
    REQUIRE(rules_above_info(report) == Names{"bad-record"});
    for (const auto& [key, value] : report.findings.front().evidence) {
      if (key == "flipped_bits") return std::get<Names>(value);
    }
    return Names{};
  };
  const Names told = flipped_bits();
  REQUIRE(told.size() == 1);
  CHECK(told.front().find(": " + now + " where " + before + " was: bit 6 of byte ") !=
        std::string::npos);
  CHECK(told.front().ends_with(" of " + path));
  // Two flipped bits are other damage.
  element[0] ^= std::byte{0x01};
  CHECK(flipped_bits().empty());
}

TEST_CASE("an item that is not an archive is a bad record, once, at every depth that reads it") {
  Files files = load("healthy_fsdp");
  std::string path;
  auto [item, header] = first_item(files, path);
  Bytes& bytes = file(files, path);
  for (std::int64_t i = 0; i < item.length; ++i)
    bytes[static_cast<std::size_t>(item.offset + i)] = std::byte{0};
  CHECK(rules_above_info(look(memory_directory("ckpt", files), Depth::kMetadata)).empty());
  CHECK(rules_above_info(look(memory_directory("ckpt", files), Depth::kHeaders)) ==
        Names{"bad-record"});
  CHECK(rules_above_info(look(memory_directory("ckpt", files), Depth::kData)) ==
        Names{"bad-record"});
}

TEST_CASE("a data file that is a Git LFS pointer is reported as one that was not downloaded") {
  Files files = load("healthy_fsdp");
  file(files, "__1_0.distcp") =
      to_bytes("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n");
  auto short_file_in = [&](Depth depth) {
    auto report = look(memory_directory("ckpt", files), depth);
    CHECK(rules_above_info(report) == Names{"short-file"});
    for (const Finding& finding : report.findings) {
      if (finding.rule == "short-file") return finding;
    }
    return Finding{};
  };
  const Finding told = short_file_in(Depth::kHeaders);
  CHECK(told.subjects == Names{"__1_0.distcp"});
  CHECK(told.cause ==
        "__1_0.distcp is a Git LFS pointer: the data file itself was not downloaded, and `git lfs "
        "pull` fetches it.");
  // At this depth no file is opened.
  CHECK(short_file_in(Depth::kMetadata).cause.find("ends before") != std::string::npos);
  Bytes& cut = file(files, "__2_0.distcp");
  cut.resize(cut.size() - 1);
  const Finding both = short_file_in(Depth::kHeaders);
  CHECK(both.subjects == Names{"__1_0.distcp", "__2_0.distcp"});
  CHECK(both.cause.find("end before") != std::string::npos);
  CHECK(both.cause.find("__1_0.distcp is a Git LFS pointer") != std::string::npos);
}

TEST_CASE("a file that was cut off, and one that is gone, are one finding each at any depth") {
  for (Depth depth : {Depth::kMetadata, Depth::kHeaders, Depth::kData}) {
    Files files = load("healthy_fsdp");
    Bytes& bytes = file(files, "__1_0.distcp");
    bytes.resize(bytes.size() - 1);
    CHECK(rules_above_info(look(memory_directory("ckpt", files), depth)) == Names{"short-file"});
    std::erase_if(files, [](const auto& entry) { return entry.first == "__1_0.distcp"; });
    CHECK(rules_above_info(look(memory_directory("ckpt", files), depth)) == Names{"missing-file"});
  }
}

TEST_CASE("a file that may not be read leaves the check undecided, not clean") {
  auto refuse = [](const std::string& path, std::uint64_t, std::size_t) {
    return path == "__1_0.distcp"
               ? std::optional(Error{ErrorKind::kIo, "permission denied", Place{path}})
               : std::nullopt;
  };
  auto directory = faulty_directory(memory_directory("ckpt", load("healthy_fsdp")), refuse);
  auto report = look(directory, Depth::kHeaders);
  CHECK(rules_above_info(report).empty());
  CHECK(report.verdict == Verdict::kUndecided);
  REQUIRE_FALSE(report.findings.empty());
  CHECK(report.findings.front().rule == "not-looked-at");
}
