// Where a verb may write its output file (never into the opened checkpoint), and the behaviour on a
// full disk.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "app/answer.h"
#include "app/process.h"
#include "core/hdf5/hdf5_writer.h"

using namespace shw::test;
namespace fs = std::filesystem;

namespace {

const std::string kPlaceData = std::string(SHW_TEST_DATA) + "/h5py/";

std::map<std::string, std::string> contents_of(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    files[entry.path().filename().string()] = {std::istreambuf_iterator<char>(file), {}};
  }
  return files;
}

void check_refused(const std::vector<std::string>& arguments) {
  Run run = shardwright(arguments);
  INFO(arguments.back());
  CHECK(run.code == 3);
  auto answer = parsed(run.out);
  CHECK(contains(answer["error"]["message"], "checkpoint"));
  CHECK(contains(answer["error"]["advice"], "--out"));
}

}  // namespace

TEST_CASE("a report of any form is never written into the checkpoint that was opened") {
  Scratch scratch;
  fs::copy(kPlaceData + "ranks/ckpt", scratch / "ckpt");
  fs::create_directory_symlink("ckpt", scratch / "link");
  const auto before = contents_of(scratch / "ckpt");
  for (const char* form : {"html", "md", "json", "sarif", "junit", "github", "hdf5"}) {
    for (const char* out : {"ckpt/new", "ckpt/shard_rank0.h5", "link/shard_rank1.h5"})
      check_refused(
          {"report", scratch / "ckpt", "--json", "--format", form, "--out", scratch / out});
  }
  check_refused({"report", scratch / "link", "--json", "--out", scratch / "ckpt/r.html"});
  CHECK(contents_of(scratch / "ckpt") == before);
  // A path next to the checkpoint is allowed.
  CHECK(shardwright({"report", scratch / "ckpt", "--out", scratch / "r.html"}).code == 0);
}

TEST_CASE("a report never replaces the one file that was opened, whatever it is called there") {
  Scratch scratch;
  fs::copy_file(kPlaceData + "latest.h5", scratch / "one.h5");
  fs::create_symlink("one.h5", scratch / "soft.h5");
  fs::create_hard_link(scratch / "one.h5", scratch / "hard.h5");
  const auto before = contents_of(scratch / "");
  for (const char* form : {"html", "hdf5"}) {
    for (const char* out : {"one.h5", "soft.h5", "hard.h5"}) {
      check_refused(
          {"report", scratch / "one.h5", "--json", "--format", form, "--out", scratch / out});
      check_refused(
          {"report", scratch / "soft.h5", "--json", "--format", form, "--out", scratch / out});
    }
  }
  CHECK(contents_of(scratch / "") == before);
  // The folder around one file is not the checkpoint.
  CHECK(shardwright({"report", scratch / "one.h5", "--out", scratch / "r.html"}).code == 0);
}

TEST_CASE("what is made of one file may be next to it, and of a folder not in it") {
  Scratch scratch;
  fs::copy_file(kPlaceData + "latest.h5", scratch / "one.h5");
  const std::vector<std::string> convert{"convert", scratch / "one.h5", "--to",  "dcp",
                                         "--yes",   "--json",           "--out", scratch / "made"};
  CHECK(shardwright(convert).code == 0);
  CHECK(shardwright({"verify", scratch / "made", "--against", scratch / "one.h5"}).code == 0);
  auto onto = convert;
  onto.back() = scratch / "one.h5";
  CHECK(shardwright(onto).code == 3);
  fs::copy(kPlaceData + "ranks/ckpt", scratch / "ckpt");
  check_refused({"convert", scratch / "ckpt", "--to", "dcp", "--yes", "--json", "--out",
                 scratch / "ckpt/made"});
}

TEST_CASE("what is made of one file without --out is named after the file and is next to it") {
  Scratch scratch;
  fs::create_directory(scratch / "in");
  fs::copy_file(kPlaceData + "latest.h5", scratch / "in/some.weights.h5");
  for (const char* name : {"in/some.weights-dcp", "in/some.weights-dcp-b"}) {
    Run run =
        shardwright({"convert", scratch / "in/some.weights.h5", "--to", "dcp", "--yes", "--json"});
    CHECK(run.code == 0);
    CHECK(contains(parsed(run.out)["output"], name));
    CHECK(fs::exists(scratch / name + "/.metadata"));
  }
  CHECK_FALSE(fs::exists(scratch / "in-dcp"));
  // For a checkpoint that is a folder, the default output is named after the folder.
  CHECK(shardwright({"convert", scratch / "in", "--to", "dcp", "--yes"}).code == 0);
  CHECK(fs::exists(scratch / "in-dcp"));
}

TEST_CASE("a file of the checkpoint that is elsewhere is not replaced by a report") {
  Scratch scratch;
  fs::copy(kPlaceData + "ranks/ckpt", scratch / "ckpt");
  fs::rename(scratch / "ckpt/shard_rank2.h5", scratch / "blob");
  fs::create_symlink("../blob", scratch / "ckpt/shard_rank2.h5");
  const auto size = fs::file_size(scratch / "blob");
  check_refused({"report", scratch / "ckpt", "--json", "--out", scratch / "blob"});
  CHECK(fs::file_size(scratch / "blob") == size);
}

// A limit on file sizes acts like a full disk on every machine.
TEST_CASE("a file that cannot be written whole is not published, and named as it was asked for") {
  const std::string copied = std::string(SHW_TEST_DATA) + "/torch-2.14/healthy_zstd/ckpt";
  const std::pair<const char*, std::string> kVerbs[] = {
      {"r.html", "report '" + copied + "'"},
      {"r.h5", "report '" + copied + "' --data"},
      {"x.h5", "export-hdf5 '" + copied + "' --copy"}};
  for (const auto& [name, verb] : kVerbs) {
    if (std::string(name).ends_with(".h5") && !shw::has_hdf5()) continue;
    Scratch whole;
    const std::string to = " --json --out '" + (whole / name) + "'";
    REQUIRE(shell("$SHARDWRIGHT " + verb + to).code == 0);
    const auto blocks = (fs::file_size(whole / name) + 1023) / 1024;  // what ulimit counts in
    for (std::uintmax_t limit = 1; limit < blocks;
         limit += std::max<std::uintmax_t>(blocks / 9, 1)) {
      Scratch scratch;
      Run run = shell("ulimit -f " + std::to_string(limit) + "; $SHARDWRIGHT " + verb +
                      " --json --out '" + (scratch / name) + "'");
      INFO(verb << " " << limit << " of " << blocks << ": " << run.code << " " << run.err);
      CHECK(run.code == 4);
      auto answer = parsed(run.out);
      CHECK(contains(answer["error"]["message"], "File too large"));
      CHECK_FALSE(contains(answer["error"]["message"], "0x"));
      CHECK(answer["error"]["file"].get<std::string>().starts_with(scratch / name));
      CHECK(fs::is_empty(scratch / ""));
    }
  }
}
