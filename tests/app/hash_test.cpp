// `hash`: short lists to compare two checkpoints on different machines.
#include <doctest/doctest.h>

#include <filesystem>

#include "app/answer.h"
#include "app/process.h"

using namespace shw::test;
namespace fs = std::filesystem;

namespace {

const std::string kSource = std::string(SHW_TEST_DATA) + "/torch-2.14/healthy_fsdp_tp_strided/ckpt";

}  // namespace

TEST_CASE("what is converted or cut again has the hashes that it had") {
  const Scratch scratch;
  const Run source = shardwright({"hash", kSource, "--json"});
  CHECK(source.code == 0);
  auto whole = [&](const std::vector<std::string>& words, const std::string& out) {
    std::vector<std::string> all = words;
    for (const std::string& word : {std::string("--out"), scratch / out, std::string("--yes")})
      all.push_back(word);
    REQUIRE(shardwright(all).code == 0);
    return parsed(shardwright({"hash", scratch / out, "--json"}).out);
  };
  const auto wanted = parsed(source.out);
  for (const auto& hashes : {whole({"convert", kSource, "--to", "torch"}, "pt"),
                             whole({"reshard", kSource, "--mesh", "dp=3"}, "dcp")}) {
    CHECK(hashes["tensors"] == wanted["tensors"]);
    CHECK(hashes["total"] == wanted["total"]);
  }
}

TEST_CASE("a list of hashes has a line a tensor, and the total behind them") {
  const Run all = shardwright({"hash", kSource});
  const Run some = shardwright({"hash", kSource, "*bias*"});
  CHECK(all.code == 0);
  CHECK(contains(all.out, "  total of "));
  // Lines are independent of each other.
  std::string lines = some.out.substr(0, some.out.rfind('\n', some.out.size() - 2) + 1);
  CHECK_FALSE(lines.empty());
  for (std::size_t at = 0; at < lines.size();) {
    const std::size_t end = lines.find('\n', at) + 1;
    CHECK(contains(all.out, lines.substr(at, end - at)));
    at = end;
  }
  CHECK(shardwright({"hash", kSource, "nothing.like.it"}).code == 1);
}

TEST_CASE("a tensor whose bytes are gone has no hash, nor has the checkpoint") {
  const Scratch scratch;
  fs::copy(kSource, scratch / "ckpt");
  for (const auto& entry : fs::directory_iterator(scratch / "ckpt")) {
    if (entry.path().extension() == ".distcp") fs::resize_file(entry.path(), 100);
  }
  const Run text = shardwright({"hash", scratch / "ckpt"});
  CHECK(text.code == 2);
  CHECK(contains(text.out, "--------------------------------  total of "));
  const Run json = shardwright({"hash", scratch / "ckpt", "--json"});
  CHECK(json.code == 2);
  CHECK(parsed(json.out)["total"].is_null());
  CHECK(contains(json.out, "\"error\""));
}

TEST_CASE("a file that nobody could read leaves hashes and statistics open") {
  const Scratch scratch;
  const std::string truth =
      std::string(SHW_TEST_DATA) + "/torch-2.14/healthy_fsdp/truth.safetensors";
  fs::create_directory(scratch / "hf");
  for (const char* part : {"1", "2"})
    fs::copy(truth, scratch / "hf/model-0000" + part + "-of-00002.safetensors");
  const std::string cut = "model-00002-of-00002.safetensors";
  fs::resize_file(scratch / "hf/" + cut, 5);
  for (const char* verb : {"hash", "stats"}) {
    CAPTURE(verb);
    const Run json = shardwright({verb, scratch / "hf", "--json"});
    CHECK(json.code == 2);
    REQUIRE(parsed(json.out).contains("unread"));
    CHECK(parsed(json.out)["unread"][0] == cut);
    const Run text = shardwright({verb, scratch / "hf"});
    CHECK(text.code == 2);
    CHECK(contains(text.out, cut + ": what it holds is not known"));
    // The named tensors have no undecided part.
    CHECK(shardwright({verb, scratch / "hf", "model.0.bias"}).code == 0);
  }
  CHECK(shardwright({"export-hdf5", scratch / "hf", "--out", scratch / "hf.h5"}).code == 2);
}
