// .keras: a zip with the weights as an HDF5 file.
#include <algorithm>
#include <string>

#include "core/formats/hdf5/hdf5_files.h"
#include "core/make_zip.h"
#include "core/rules/check.h"

using namespace shw;
using namespace shw::test;

namespace {

const std::string kArchive = "keras-3/archive/ckpt/model.keras";

OpenedCheckpoint open_archive(const std::string& text) {
  auto bytes = std::as_bytes(std::span(text));
  return open_checkpoint(
      memory_directory("memory", {{"model.keras", Bytes(bytes.begin(), bytes.end())}}));
}

std::string text_of(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

TEST_CASE("an archive that Keras saved is read in place, every tensor as it was held") {
  for (const std::string& path : {kArchive, std::string("keras-3/archive/ckpt")}) {
    auto checkpoint = opened(path);
    CHECK(checkpoint->opening_findings().empty());
    auto truth = read_truth(kDataFolder + "/keras-3/archive/truth.safetensors");
    REQUIRE(truth.has_value());
    CHECK(checkpoint->tensor_count() == truth->size());
    const Bytes archive = file_bytes(kArchive);
    for (const auto& [fqn, wanted] : *truth) {
      CAPTURE(fqn);
      auto values = read_named(*checkpoint, fqn);
      REQUIRE(values.has_value());
      CHECK(values->shape == wanted.shape);
      CHECK(values->bytes == wanted.bytes);
      // The place is relative to the archive, so that other programs can read it there.
      auto item = checkpoint->item(checkpoint->chunks(*checkpoint->find(fqn))[0]);
      REQUIRE(item.has_value());
      CHECK(checkpoint->file(item->file).path == "model.keras");
      auto first = archive.begin() + item->offset;
      CHECK(Bytes(first, first + item->length) == wanted.bytes);
    }
    CHECK(check(*checkpoint, {})->verdict == Verdict::kClean);
  }
}

TEST_CASE("an archive that holds its weights compressed or not at all is refused by name") {
  const std::string weights = text_of(file_bytes("keras-3/weights/ckpt/model.weights.h5"));
  auto stored = open_archive(make_zip({{"config.json", "{}"}, {"model.weights.h5", weights}}));
  REQUIRE(stored.has_value());
  CHECK((*stored)->tensor_count() == 26);
  ZipRecord packed{"model.weights.h5", weights};
  packed.deflate = true;
  auto compressed = open_archive(make_zip({{"config.json", "{}"}, packed}));
  REQUIRE_FALSE(compressed.has_value());
  CHECK(compressed.error().message.find("compressed") != std::string::npos);
  CHECK(compressed.error().place.file == "model.keras");
  CHECK(compressed.error().place.offset.has_value());
  CHECK(compressed.error().advice.find("Unzip") != std::string::npos);
  auto none = open_archive(make_zip({{"config.json", "{}"}}));
  REQUIRE_FALSE(none.has_value());
  CHECK(none.error().message.find("without a model.weights.h5") != std::string::npos);
}

TEST_CASE("what is damaged in an archive is told at its byte of the archive") {
  const std::string weights = text_of(file_bytes("keras-3/weights/ckpt/model.weights.h5"));
  const std::string archive = make_zip({{"config.json", "{}"}, {"model.weights.h5", weights}});
  const std::size_t begin = archive.find("\x89HDF");
  REQUIRE(begin != std::string::npos);
  std::string broken = archive;
  broken[begin + 8] = 9;  // the version of the superblock
  auto refused = open_archive(broken);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().place.offset == begin + 8);
  // A part of the file: bytes beyond its end belong to other records.
  const std::string cut = weights.substr(0, weights.size() / 2);
  auto short_one = open_archive(make_zip({{"model.weights.h5", cut}, {"other", weights}}));
  REQUIRE(short_one.has_value());
  CHECK(check(**short_one, {})->verdict == Verdict::kFindings);
  for (std::uint32_t t = 0; t < (*short_one)->tensor_count(); ++t) {
    for (ChunkId chunk : (*short_one)->chunks(TensorId{t})) {
      auto item = (*short_one)->item(chunk);
      REQUIRE(item.has_value());
      CHECK(static_cast<std::size_t>(item->offset + item->length) <=
            archive.size() - weights.size() + cut.size());
    }
  }
}

TEST_CASE("no byte of an archive can be wrong and do harm") {
  const Bytes whole = file_bytes(kArchive);
  for (std::size_t at = 0; at < whole.size(); at += 7) {
    Bytes bytes = whole;
    bytes[at] ^= std::byte{0xFF};
    auto checkpoint = open_checkpoint(memory_directory("memory", {{"model.keras", bytes}}));
    if (!checkpoint) {
      CHECK_FALSE(checkpoint.error().message.empty());
      continue;
    }
    for (std::uint32_t t = 0; t < (*checkpoint)->tensor_count(); ++t)
      (void)read_tensor(**checkpoint, TensorId{t});
  }
}

TEST_CASE("any byte of a record of an archive that is another one is found at depth data") {
  const std::string weights = text_of(file_bytes("keras-3/weights/ckpt/model.weights.h5"));
  const std::string whole =
      make_zip({{"config.json", "{\"a\": 1}"}, {"model.weights.h5", weights}});
  auto rules_at = [&](const std::string& archive, Depth depth) {
    auto opened = open_archive(archive);
    REQUIRE(opened.has_value());
    CheckOptions options;
    options.depth = depth;
    return *check(**opened, options);
  };
  auto clean = rules_at(whole, Depth::kData);
  CHECK(clean.verdict == Verdict::kClean);
  // The file's checksum covers items without a checksum.
  for (const Unjudged& one : clean.unjudged)
    CHECK(one.needs.find("checksums") == std::string::npos);
  auto checkpoint = open_archive(whole);
  const auto values = (*checkpoint)->item(ChunkId{0});
  REQUIRE(values.has_value());
  for (std::size_t at : {whole.find("{\"a\"") + 2, static_cast<std::size_t>(values->offset)}) {
    std::string broken = whole;
    broken[at] ^= 1;
    CHECK(rules_at(broken, Depth::kHeaders).verdict == Verdict::kClean);
    CheckReport found = rules_at(broken, Depth::kData);
    REQUIRE(found.findings.size() == 1);
    CHECK(found.findings[0].rule == "bad-record");
    CHECK(found.findings[0].subjects == std::vector<std::string>{"model.keras"});
    CHECK(found.findings[0].cause.find("does not match its checksum") != std::string::npos);
  }
  // A writer that omitted all checksums.
  ZipRecord bare{"model.weights.h5", weights};
  bare.crc = false;
  auto without = rules_at(make_zip({bare}), Depth::kData);
  CHECK(without.verdict == Verdict::kClean);
  CHECK(std::any_of(without.unjudged.begin(), without.unjudged.end(), [](const Unjudged& one) {
    return one.needs.find("checksums") != std::string::npos;
  }));
}
