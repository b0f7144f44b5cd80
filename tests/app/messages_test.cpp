// Checks that a message names the faulty input as it was typed, and no other.
#include <doctest/doctest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "app/answer.h"
#include "app/process.h"

using namespace shw::test;
namespace fs = std::filesystem;

namespace {

const std::string kSaved = std::string(SHW_TEST_DATA) + "/torch-2.14/";

void write_words(const std::string& path, const std::string& words) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << words;
}

// One weight of 64 rows in blocks of eight, neither fused nor square, so that headers and the first
// 4 KiB do not reveal the order.
void write_blocks(const std::string& path, const std::vector<int>& order) {
  constexpr int kWide = 1024, kTall = 8;
  const std::string header =
      R"({"model.layers.0.mlp.down_proj.weight":{"dtype":"F32","shape":[64,1024],)"
      R"("data_offsets":[0,262144]}})";
  const std::uint64_t length = header.size();
  std::string file(reinterpret_cast<const char*>(&length), sizeof length);
  file += header;
  for (int block : order) {
    for (int i = 0; i < kTall * kWide; ++i) {
      const auto value = static_cast<float>(block * kTall * kWide + i);
      file.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
  }
  write_words(path, file);
}

// A sound checkpoint, one that lost elements, and one whose metadata is rubbish.
struct Saved {
  Scratch scratch;
  Saved() {
    fs::copy(kSaved + "healthy_grid/ckpt", scratch / "sound");
    fs::copy(kSaved + "s2_swiglu_t1/ckpt", scratch / "lossy");
    fs::create_directory(scratch / "broken");
    write_words(scratch / "broken/.metadata", "garbage");
  }
  Run run(const std::string& words) const {
    return shell("cd '" + (scratch / "") + "' && \"$SHARDWRIGHT\" " + words);
  }
};

}  // namespace

TEST_CASE("damage of a checkpoint that is read next to another is never said of the other") {
  Saved saved;
  for (const char* words :
       {"check sound --against broken", "verify sound --against broken", "diff sound broken",
        "repair lossy --fill from:broken --yes", "report sound --against broken"}) {
    CAPTURE(words);
    Run run = saved.run(words);
    CHECK(run.code == 2);
    CHECK(run.err.starts_with("broken/.metadata: "));
  }
}

TEST_CASE("a plan that fills from a checkpoint names that one where it is damaged since") {
  Saved saved;
  REQUIRE(saved.run("repair lossy --yes --out from").code == 0);
  REQUIRE(saved.run("plan lossy --fill from:from --json > plan.json").code == 0);
  std::ifstream plan(saved.scratch / "plan.json");
  REQUIRE(contains({std::istreambuf_iterator<char>(plan), {}}, "fill_checkpoint"));
  write_words(saved.scratch / "from/.metadata", "garbage");
  Run run = saved.run("repair lossy --plan plan.json --yes");
  CHECK(run.code == 2);
  CHECK(contains(run.err, "from/.metadata: "));
  CHECK_FALSE(contains(run.err, "lossy"));
}

TEST_CASE("a file that was opened alone is named once, as it was typed") {
  Saved saved;
  fs::create_directory(saved.scratch / "in");
  write_words(saved.scratch / "in/model.pt", "PK\x03\x04 and no archive behind it");
  for (const std::string& name : {std::string("in/model.pt"), saved.scratch / "in/model.pt"}) {
    CAPTURE(name);
    Run run = saved.run("check '" + name + "'");
    CHECK(run.code == 2);
    CHECK(run.err.starts_with(name + ": at byte "));
  }
}

TEST_CASE("one data file of a checkpoint leads to the folder around it") {
  Saved saved;
  Run run = saved.run("check sound/__0_0.distcp");
  CHECK(run.code == 2);
  CHECK(contains(run.err, "sound/__0_0.distcp: is only one data file of a checkpoint"));
  CHECK(contains(run.err, "Open its folder instead: sound\n"));
}

TEST_CASE("JSON that is none is named as it was typed, with the byte") {
  Saved saved;
  write_words(saved.scratch / "bad.json", "{\"*\": [\"Shard(0)\", ]}");
  for (const char* words : {"reshard sound --mesh dp=2 --placements bad.json --yes",
                            "plan sound --plan bad.json", "check sound --spec bad.json"}) {
    CAPTURE(words);
    Run run = saved.run(words);
    CHECK(run.code != 0);
    CHECK(run.err.starts_with("bad.json: at byte 19: not JSON: syntax error"));
  }
  Run gone = saved.run("reshard sound --mesh dp=2 --placements gone.json --yes");
  CHECK(gone.code == 4);
  CHECK(gone.err.starts_with("gone.json: cannot open it"));
}

TEST_CASE("an output that holds the checkpoint is there already, and not in it") {
  Saved saved;
  fs::create_directory(saved.scratch / "run");
  for (const char* name : {"sound", "lossy"})
    fs::copy(saved.scratch / name, saved.scratch / (std::string("run/") + name));
  for (const char* words :
       {"convert run/sound --to torch --yes --out run", "repair run/lossy --yes --out run"}) {
    CAPTURE(words);
    Run run = saved.run(words);
    CHECK(run.code == 3);
    CHECK(contains(run.err, "run: already exists, and is never replaced"));
  }
}

TEST_CASE("a report is not written as Markdown under the name of a PDF") {
  Saved saved;
  Run run = saved.run("report sound --out r.pdf");
  CHECK(run.code == 3);
  CHECK(contains(run.err, "r.pdf: a report cannot be a PDF"));
  CHECK_FALSE(fs::exists(saved.scratch / "r.pdf"));
  CHECK(saved.run("report sound --out r.pdf --format md").code == 0);
}

TEST_CASE("the command that a look at every byte ends with finds it again, and mends it") {
  Saved saved;
  for (const char* name : {"right", "wrong"}) fs::create_directory(saved.scratch / name);
  write_blocks(saved.scratch / "right/model.safetensors", {0, 1, 2, 3, 4, 5, 6, 7});
  write_blocks(saved.scratch / "wrong/model.safetensors", {0, 2, 1, 3, 5, 4, 6, 7});
  Run headers = saved.run("repair wrong --against right --yes");
  CHECK(headers.code == 0);
  CHECK(contains(headers.err, "No finding (depth headers)"));
  CHECK(contains(headers.err, "--data"));
  Run check = saved.run("check wrong --against right --data");
  CHECK(check.code == 1);
  REQUIRE(contains(check.out, "shardwright repair wrong --against right --data\n"));
  CHECK(saved.run("repair wrong --against right --data --yes").code == 0);
  CHECK(saved.run("diff right wrong-repaired --data").code == 0);
}

TEST_CASE("an answer longer than a pipe that does not wait arrives whole") {
  Run run = shardwright_into_full_pipe({"ls", demo() + "/step_9000", "--json"});
  CHECK(run.code == 0);
  CHECK(run.out.size() > (std::size_t{64} << 10));
  CHECK(parsed(run.out).is_object());
}

TEST_CASE("help and the man page name the size of a shard in one word") {
  for (const char* words : {"convert --help", "completion man"}) {
    CAPTURE(words);
    Run run = Saved().run(words);
    CHECK(run.code == 0);
    CHECK(contains(run.out, "shard"));
    CHECK_FALSE(contains(run.out, "kib("));
  }
}
