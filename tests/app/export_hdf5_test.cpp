// `export-hdf5`, run as a process. What h5py reads through the file is checked in tests/interop.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "app/answer.h"
#include "app/process.h"
#include "core/hdf5/hdf5_writer.h"

using namespace shw::test;
namespace fs = std::filesystem;

namespace {

const std::string kExported = std::string(SHW_TEST_DATA) + "/torch-2.14/healthy_moe_ep/ckpt";

std::string first_data_file(const std::string& folder) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".distcp") return entry.path().string();
  }
  return {};
}

std::size_t entries_in(const std::string& folder) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

}  // namespace

TEST_CASE("without HDF5 export-hdf5 says what is missing and writes nothing") {
  if (shw::has_hdf5()) return;
  Scratch scratch;
  Run run = shardwright({"export-hdf5", kExported, "--out", scratch / "x.h5", "--json"});
  CHECK(run.code == 2);
  CHECK(contains(run.out, "libhdf5-dev"));
  CHECK_FALSE(fs::exists(scratch / "x.h5"));
}

TEST_CASE("export-hdf5 writes one small file and leaves nothing next to it") {
  if (!shw::has_hdf5()) return;
  Scratch scratch;
  Run run = shardwright({"export-hdf5", kExported, "--out", scratch / "x.h5", "--json"});
  CHECK(run.code == 0);
  auto answer = parsed(run.out);
  CHECK(answer["tensors"] == 6);
  CHECK(answer["left_out"].empty());
  CHECK(answer["output"] == scratch / "x.h5");
  CHECK(answer["bytes"] == fs::file_size(scratch / "x.h5"));
  CHECK(entries_in(scratch / "") == 1);
  std::ifstream file(scratch / "x.h5", std::ios::binary);
  std::string magic(8, '\0');
  file.read(magic.data(), 8);
  CHECK(magic == "\x89HDF\r\n\x1a\n");
}

TEST_CASE("export-hdf5 replaces nothing and never writes into the checkpoint") {
  if (!shw::has_hdf5()) return;
  Scratch scratch;
  std::ofstream(scratch / "x.h5") << "mine";
  CHECK(shardwright({"export-hdf5", kExported, "--out", scratch / "x.h5"}).code == 3);
  CHECK(fs::file_size(scratch / "x.h5") == 4);
  fs::copy(kExported, scratch / "ckpt");
  const std::size_t before = entries_in(scratch / "ckpt");
  CHECK(shardwright({"export-hdf5", scratch / "ckpt", "--out", scratch / "ckpt/x.h5"}).code == 3);
  CHECK(entries_in(scratch / "ckpt") == before);
  CHECK(shardwright({"export-hdf5", kExported, "--out", scratch / "no/x.h5"}).code == 4);
  CHECK(shardwright({"export-hdf5", kExported, "--paths", "near"}).code == 3);
}

TEST_CASE("export-hdf5 of a checkpoint that lost a file leaves its tensors out and exits 2") {
  if (!shw::has_hdf5()) return;
  Scratch scratch;
  fs::copy(kExported, scratch / "ckpt");
  REQUIRE(fs::remove(first_data_file(scratch / "ckpt")));
  Run run = shardwright({"export-hdf5", scratch / "ckpt", "--out", scratch / "x.h5", "--json"});
  CHECK(run.code == 2);
  auto answer = parsed(run.out);
  CHECK_FALSE(answer["left_out"].empty());
  CHECK(answer["tensors"].get<std::size_t>() + answer["left_out"].size() == 6);
  CHECK(answer["reasons"].size() == answer["left_out"].size());
  CHECK(answer["reasons"][0]["damaged"] == true);
  CHECK_FALSE(answer["notes"].empty());
}

TEST_CASE("what is compressed is left out of an export, and copied when that is asked for") {
  if (!shw::has_hdf5()) return;
  const std::string zstd = std::string(SHW_TEST_DATA) + "/torch-2.14/healthy_zstd/ckpt";
  Scratch scratch;
  Run mapped = shardwright({"export-hdf5", zstd, "--out", scratch / "a.h5", "--json"});
  CHECK(mapped.code == 0);
  CHECK(parsed(mapped.out)["reasons"][0]["why"] == "it is compressed");
  Run copied = shardwright({"export-hdf5", zstd, "--out", scratch / "b.h5", "--json", "--copy"});
  CHECK(copied.code == 0);
  CHECK(parsed(copied.out)["left_out"].empty());
  CHECK(parsed(copied.out)["copied"] == parsed(mapped.out)["left_out"]);
}

TEST_CASE("a report of tables goes into a file, and replaces the one before") {
  Scratch scratch;
  CHECK(shardwright({"report", kExported, "--format", "hdf5"}).code == 3);
  for (int round = 0; round < 2; ++round) {
    Run run = shardwright({"report", kExported, "--out", scratch / "r.h5", "--data", "--json"});
    if (!shw::has_hdf5()) {
      CHECK(run.code == 2);
      continue;
    }
    CHECK(run.code == 0);
    CHECK(parsed(run.out)["bytes"] == fs::file_size(scratch / "r.h5"));
    CHECK(entries_in(scratch / "") == 1);
  }
}

TEST_CASE("what ranks saved alike is exported once, and left out where they differ") {
  if (!shw::has_hdf5()) return;
  Scratch scratch;
  fs::copy(std::string(SHW_TEST_DATA) + "/h5py/replicas", scratch / "ckpt");
  auto exported = [&](const std::string& name) {
    Run run = shardwright({"export-hdf5", scratch / "ckpt", "--out", scratch / name, "--json"});
    auto answer = parsed(run.out);
    answer["code"] = run.code;
    return answer;
  };
  auto alike = exported("alike.h5");
  // The mask lacks its last part and is exported in part; the tiles are compressed with deflate.
  CHECK(alike["left_out"] == nlohmann::json({"mask", "tiles"}));
  CHECK(alike["tensors"] == 2);
  CHECK(alike["partial"] == nlohmann::json({"mask"}));

  const std::string second = scratch / "ckpt/shard_rank1.h5";
  std::ifstream whole(second, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(whole)), {});
  const float numbers[] = {0, 1, 2, 3, 4};
  std::string tail(reinterpret_cast<const char*>(numbers), sizeof numbers);
  const std::size_t at = bytes.find(tail);
  REQUIRE(at != std::string::npos);
  bytes[at] = '\x7f';
  std::ofstream(second, std::ios::binary) << bytes;
  auto differing = exported("differing.h5");
  CHECK(differing["code"] == 2);
  CHECK(differing["left_out"] == nlohmann::json({"mask", "norm", "tiles"}));
  for (const auto& reason : differing["reasons"]) {
    if (reason["fqn"] != "norm") continue;
    CHECK(reason["damaged"] == true);
    CHECK(contains(reason["why"], "it is not known whose elements are right"));
  }
}

TEST_CASE("a tensor that check calls an error does not look whole in an export") {
  if (!shw::has_hdf5()) return;
  Scratch scratch;
  fs::copy(std::string(SHW_TEST_DATA) + "/h5py/ranks/ckpt", scratch / "ckpt");
  CHECK(shardwright({"export-hdf5", scratch / "ckpt", "--out", scratch / "a.h5"}).code == 0);
  // A file whose hash differs from the recorded one.
  std::ofstream(scratch / "ckpt/integrity.json")
      << R"({"algorithm": "sha256", "files": {"shard_rank0.h5": ")" << std::string(64, '0')
      << "\"}}";
  Run run =
      shardwright({"export-hdf5", scratch / "ckpt", "--out", scratch / "b.h5", "--data", "--json"});
  CHECK(run.code == 2);
  auto answer = parsed(run.out);
  CHECK(answer["tensors"] == 0);
  REQUIRE_FALSE(answer["reasons"].empty());
  CHECK(answer["reasons"][0]["damaged"] == true);
  CHECK(contains(answer["reasons"][0]["why"], "file-hash"));
  // Rows in a wrong order are complete, so they are exported as recorded.
  Run rows =
      shardwright({"export-hdf5", std::string(SHW_TEST_DATA) + "/torch-2.14/s2_swiglu_t1/ckpt",
                   "--out", scratch / "c.h5", "--json"});
  CHECK(rows.code == 0);
  CHECK(parsed(rows.out)["left_out"].empty());
}
