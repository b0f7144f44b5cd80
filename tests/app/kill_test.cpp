// Kills the program at random moments. SHW_KILLS is the number of rounds.
#include <doctest/doctest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <sstream>

#include "app/answer.h"
#include "app/process.h"
#include "core/repair/make_checkpoint.h"
#include "core/repair/plan/plan.h"

using namespace shw::test;
namespace fs = std::filesystem;

namespace {

using Files = std::map<std::string, std::string>;

Files files_below(const std::string& path) {
  Files files;
  for (const auto& entry : fs::recursive_directory_iterator(path)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    std::ostringstream all;
    all << in.rdbuf();
    files[fs::relative(entry.path(), path).string()] = all.str();
  }
  return files;
}

// Four tensors of 4 MiB in two files each; the rows of all but one have to move.
constexpr std::int64_t kRows = 1024, kColumns = 1024, kTiles = 4;

void make_checkpoint(const std::string& path) {
  std::vector<shw::MadeTensor> tensors;
  for (std::int64_t t = 0; t < 4; ++t) {
    shw::MadeTensor tensor{"w" + std::to_string(t), {kRows, kColumns}, {}};
    for (std::int64_t i = 0; i < kTiles; ++i) {
      shw::Values values(static_cast<std::size_t>(kRows / kTiles * kColumns));
      for (std::size_t k = 0; k < values.size(); ++k)
        values[k] = static_cast<std::int64_t>(k % 1000) + 1000 * i + 10000 * t;
      tensor.chunks.push_back({{{i * kRows / kTiles, 0}, {kRows / kTiles, kColumns}},
                               {kRows / kTiles, kColumns},
                               std::move(values),
                               static_cast<std::uint32_t>(2 * t + i % 2)});
    }
    tensors.push_back(std::move(tensor));
  }
  shw::write_checkpoint(path, tensors);
}

std::string plan_of(const std::string& path) {
  auto checkpoint = shw::opened(path);
  shw::Finding finding;
  finding.rule = "planted";
  std::vector<std::int64_t> order;
  for (std::int64_t i = 0; i < kRows / 16; ++i) order.push_back(kRows / 16 - 1 - i);
  for (std::uint32_t t = 0; t < 3; ++t) {
    finding.subjects.push_back("w" + std::to_string(t));
    finding.diagnoses.push_back(shw::BlocksPermuted{shw::TensorId{t}, 0, 16, order});
  }
  shw::CheckReport report;
  report.findings = {finding};
  auto plan = shw::make_plan(*checkpoint, report, {});
  REQUIRE(plan.has_value());
  return shw::plan_to_json(*checkpoint, *plan);
}

int wanted_kills(int usual) {
  const char* said = std::getenv("SHW_KILLS");
  return said == nullptr ? usual : std::atoi(said);
}

enum class Making { kRepair, kConversion };

struct Killing {
  Scratch scratch;
  std::string checkpoint = scratch / "ckpt", out = scratch / "out";
  std::vector<std::string> making;
  Files source, wanted;
  unsigned whole_run = 0;  // microseconds
  std::mt19937 dice{20261122};
  int left_half = 0, resumed = 0, repeated = 0, rolled_back = 0, nothing_left = 0, whole = 0;

  explicit Killing(Making what = Making::kRepair) {
    make_checkpoint(checkpoint);
    std::ofstream(scratch / "plan.json") << plan_of(checkpoint);
    making = {"repair", checkpoint, "--plan", scratch / "plan.json"};
    // One file per tensor, and hashes of all files.
    if (what == Making::kConversion)
      making = {"convert", checkpoint, "--to", "safetensors", "--shard-size", "4M", "--integrity"};
    making.insert(making.end(), {"--out", out, "--yes", "--quiet"});
    source = files_below(checkpoint);
    auto begin = std::chrono::steady_clock::now();
    REQUIRE(shardwright(making).code == 0);
    auto taken = std::chrono::steady_clock::now() - begin;
    whole_run =
        static_cast<unsigned>(std::chrono::duration_cast<std::chrono::microseconds>(taken).count());
    wanted = files_below(out);
    fs::remove_all(out);
  }

  unsigned some_time() { return static_cast<unsigned>(dice() % (whole_run + whole_run / 10 + 1)); }

  std::vector<std::string> half_made() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(fs::path(out).parent_path())) {
      std::string path = entry.path().string();
      if (path.starts_with(out + ".")) found.push_back(path);
    }
    return found;
  }

  void check_result() {
    Files made = files_below(out);
    made.erase(".shardwright-journal");
    made.erase(".shardwright-owner");
    CHECK(made == wanted);
  }

  // Resumes with the command that the user would type.
  void go_on() {
    bool again = dice() % 3 == 0;
    if (again) {
      // Kills the resumed run too.
      shardwright_killed({"resume", out, "--quiet"}, some_time());
    }
    bool was_there = fs::exists(out);
    Run run = shardwright({"resume", out, "--json"});
    CAPTURE(run.out);
    if (run.code == 3) {
      // The killed run had not begun, or left only an empty folder.
      CHECK_FALSE(was_there);
      ++nothing_left;
      REQUIRE(shardwright(making).code == 0);
    } else {
      REQUIRE(run.code == 0);
      CHECK(parsed(run.out)["output"] == out);
      CHECK(parsed(run.out)["certificate"] == out + "/certificate.json");
      ++resumed;
    }
  }

  void one(int round) {
    CAPTURE(round);
    shardwright_killed(making, some_time());
    CHECK(files_below(checkpoint) == source);
    whole += fs::exists(out);
    left_half += !half_made().empty();
    if (fs::exists(out)) check_result();
    switch (fs::exists(out) ? 0 : dice() % 4) {
      case 0:
      case 1:
        go_on();
        check_result();
        break;
      case 2: {
        Run run = shardwright(making);
        CAPTURE(run.err);
        REQUIRE(run.code == 0);
        check_result();
        ++repeated;
        break;
      }
      case 3: {
        bool something = !half_made().empty();
        Run run = shardwright({"resume", "--roll-back", out, "--json"});
        CHECK(run.code == (something ? 0 : 3));
        CHECK(half_made().empty());
        CHECK_FALSE(fs::exists(out));
        ++rolled_back;
        break;
      }
    }
    if (fs::exists(out)) CHECK(shardwright({"verify", out, "--against", checkpoint}).code == 0);
    CHECK(files_below(checkpoint) == source);
    // At most an unnamed folder may be left; --roll-back deletes it.
    if (!half_made().empty()) shardwright({"resume", "--roll-back", out});
    CHECK(half_made().empty());
    fs::remove_all(out);
  }
};

}  // namespace

namespace {

void kill_often(Killing& killing, int kills) {
  for (int round = 0; round < kills; ++round) killing.one(round);
  MESSAGE(kills << " kills in " << killing.whole_run << " us: half made " << killing.left_half
                << ", whole " << killing.whole << ", resumed " << killing.resumed << ", repeated "
                << killing.repeated << ", rolled back " << killing.rolled_back << ", nothing left "
                << killing.nothing_left);
  CHECK(killing.left_half + killing.whole + killing.nothing_left > 0);
}

}  // namespace

TEST_CASE("a repair that is killed at any moment is resumed, repeated or rolled back") {
  Killing killing;
  kill_often(killing, wanted_kills(30));
}

TEST_CASE("a conversion that is killed at any moment is resumed, repeated or rolled back") {
  Killing killing(Making::kConversion);
  CHECK(killing.wanted.contains("model-00004-of-00004.safetensors"));
  CHECK(killing.wanted.contains("integrity.json"));
  kill_often(killing, wanted_kills(15));
}

TEST_CASE(
    "a repair that a scheduler or a person stops keeps what is finished and is gone on with") {
  Killing killing;
  bool kept[2] = {false, false};
  for (int round = 0; round < 40 && !(kept[0] && kept[1]); ++round) {
    const bool by_scheduler = round % 2 == 0;
    std::string words;
    for (const std::string& word : killing.making) words += " '" + word + "'";
    std::string seconds =
        std::to_string(static_cast<double>(killing.whole_run * (1 + round % 9)) / 1e7);
    Run run = shell("timeout -s " + std::string(by_scheduler ? "TERM " : "INT ") + seconds +
                    " \"$SHARDWRIGHT\"" + words);
    if (run.code == 124 && !killing.half_made().empty()) {
      CHECK(contains(run.err, "resume"));
      CHECK(shardwright({"resume", killing.out}).code == 0);
      killing.check_result();
      kept[by_scheduler ? 0 : 1] = true;
    }
    fs::remove_all(killing.out);
  }
  CHECK(kept[0]);
  CHECK(kept[1]);
}

TEST_CASE("a file that may not grow is an error with words, and goes on where it may") {
  Killing killing(Making::kConversion);
  std::string words;
  for (const std::string& word : killing.making) words += " '" + word + "'";
  // Limit in KiB: tensors of 4 MiB do not fit.
  Run run = shell("ulimit -f 2000; $SHARDWRIGHT" + words);
  CHECK(run.code == 4);
  CHECK(run.err.find("File too large") != std::string::npos);
  CHECK(killing.half_made().empty());
  CHECK(files_below(killing.checkpoint) == killing.source);
  REQUIRE(shardwright(killing.making).code == 0);
  killing.check_result();
}

TEST_CASE("--memory bounds what is taken, and says so where it is not a number of bytes") {
  Killing killing;
  auto words = killing.making;
  words.insert(words.end(), {"--memory", "1M"});
  REQUIRE(shardwright(words).code == 0);
  CHECK(files_below(killing.out) == killing.wanted);
  for (const char* wrong : {"12", "1023K", "much", "-1", "1Q", ""}) {
    words.back() = wrong;
    CHECK(shardwright(words).code == 3);
  }
}
