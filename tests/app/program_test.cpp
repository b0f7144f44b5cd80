// The program as a process: its stdout, stderr and exit codes.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "app/answer.h"
#include "app/process.h"

using namespace shw::test;
using Json = nlohmann::json;

namespace {

const std::string kDown = "model.layers.3.moe.experts.down_proj.weight";

std::string step() {
  return demo() + "/step_9000";
}
std::string spec() {
  return demo() + "/spec.json";
}
}  // namespace

TEST_CASE("help leads with examples and ends well") {
  Run run = shardwright({"--help"});
  CHECK(run.code == 0);
  CHECK(run.err.empty());
  CHECK(run.out.find("shardwright check") < run.out.find("Verbs"));
  Run check = shardwright({"check", "--help"});
  CHECK(check.code == 0);
  CHECK(check.out.find("shardwright check step_9000") < check.out.find("--fail-on"));
}

TEST_CASE("what help says of options fits a terminal of eighty columns") {
  for (const char* verb :
       {"check", "repair", "convert", "resume", "explain", "ls", "export-hdf5"}) {
    Run run = shardwright({verb, "--help"});
    CHECK(run.code == 0);
    std::istringstream lines(run.out.substr(run.out.find("\nUsage:")));
    for (std::string line; std::getline(lines, line);) CHECK_MESSAGE(line.size() <= 80, line);
  }
}

TEST_CASE("a mistyped verb is refused with the one that was meant") {
  Run run = shardwright({"chekc", "x"});
  CHECK(run.code == 3);
  CHECK(run.out.empty());
  CHECK(contains(run.err, "did you mean check?"));
  Run json = shardwright({"chekc", "x", "--json"});
  CHECK(json.code == 3);
  CHECK(contains(parsed(json.out)["error"]["message"].get<std::string>(), "chekc"));
}

TEST_CASE("wrong options and missing arguments are usage errors") {
  struct Case {
    std::vector<std::string> arguments;
  };
  for (const Case& c : {Case{{"check"}}, Case{{"check", "x", "--nonsense"}},
                        Case{{"check", "x", "--depth", "deep"}}, Case{{"show", "x"}}}) {
    CHECK(shardwright(c.arguments).code == 3);
  }
}

TEST_CASE("a usage error names the verb and the option that was meant") {
  struct Row {
    std::vector<std::string> arguments;
    const char* message;
    const char* advice;
  };
  const Row rows[] = {
      {{"check", "x", "--spce", "y"}, "check has no option --spce", "did you mean --spec"},
      {{"check", "--hlep"}, "check has no option --hlep", "did you mean --help"},
      {{"check", "x", "--dpeth=data"}, "check has no option --dpeth", "did you mean --depth"},
      {{"ls", "x", "-z"}, "ls has no option -z", "ls --help"},
      {{"check"}, "check needs a CHECKPOINT", "check --help"},
      {{"show", "x"}, "show needs a FQN", "show --help"},
      {{"info", "x", "y"}, "y", "info --help"},
      {{"show", "x", "w", "--limit", "-1"}, "-1 is not a whole number of 0 or more", "show --help"},
      {{"show", "x", "w", "--limit", "18446744073709551616"},
       "18446744073709551616 is larger than 2^64 - 1",
       "show --help"},
      {{"convert", "x", "--to", "safetensors", "--shard-size", "18446744073709551616"},
       "18446744073709551616 is more than 2^64 - 1 bytes",
       "convert --help"},
      {{"convert", "x", "--to", "safetensors", "--shard-size", "-1"},
       "-1 is not a number of bytes",
       "convert --help"},
      {{"convert", "x", "--to", "safetensors", "--memory", "18446744073709551616"},
       "is a number of bytes of at least 1M",
       "convert --help"},
      {{"check", "x", "--threads", "0"}, "--threads: Value 0 not in range", "check --help"},
      {{"check", "x", "--threads", "-3"}, "--threads: Value -3 not in range", "check --help"},
      {{"--json", "--quiet"}, "a verb is missing", "--help"},
      {{"-q", "check", "x"}, "-q comes before the verb", "shardwright check -q"},
  };
  for (const Row& row : rows) {
    Run run = shardwright(row.arguments);
    std::string said = run.err + run.out;
    CAPTURE(said);
    CHECK(run.code == 3);
    CHECK(contains(said, row.message));
    CHECK(contains(said, row.advice));
    CHECK_FALSE(contains(said, "VERB"));
  }
}

TEST_CASE("ls refuses terms that are none and says so where nothing fits") {
  for (const char* term : {"foo:bar", "dytpe:bf16", "rank:x", "finding:nosuch", "dtype:bf61"}) {
    CAPTURE(term);
    Run run = shardwright({"ls", step(), term});
    CHECK(run.code == 3);
    CHECK(run.out.empty());
    CHECK_FALSE(run.err.empty());
  }
  Run none = shardwright({"ls", step(), "rank:99"});
  CHECK(none.code == 1);
  CHECK(contains(none.err, "No tensor matches"));
  CHECK(
      parsed(
          shardwright({"ls", step(), "dtype:bf16", "down_proj", "ndim:3", "--json"}).out)["tensors"]
          .size() == 1);
}

TEST_CASE("an answer is the same on any number of threads") {
  Run one = shardwright({"check", step(), "--spec", spec(), "--data", "--threads", "1"});
  Run many = shardwright({"check", step(), "--spec", spec(), "--data", "--threads", "9"});
  CHECK(one.code == 1);
  CHECK(many.code == one.code);
  CHECK(many.out == one.out);
}

TEST_CASE("a plan says how to go without a file that is lost") {
  Scratch scratch;
  std::filesystem::copy(std::string(SHW_TEST_DATA) + "/torch-2.14/healthy_moe_ep/ckpt",
                        scratch / "c", std::filesystem::copy_options::recursive);
  std::filesystem::remove(scratch / "c/__1_0.distcp");
  Run plan = shardwright({"plan", scratch / "c"});
  CHECK(plan.code == 1);
  CHECK(contains(plan.err, "can be dropped and the rest kept"));
  CHECK(contains(plan.err, "--fill from:CHECKPOINT"));
  CHECK(contains(plan.err, " --fill zero\n"));
  Run filled = shardwright({"repair", scratch / "c", "--fill", "zero", "--in-place", "--yes"});
  CHECK(filled.code == 2);
  CHECK(contains(filled.err, "(fill) cannot be done in place"));
}

TEST_CASE("repair: zeros in the place of what is lost fail it unless they are accepted") {
  Scratch scratch;
  std::filesystem::copy(std::string(SHW_TEST_DATA) + "/torch-2.14/healthy_moe_ep/ckpt",
                        scratch / "c", std::filesystem::copy_options::recursive);
  std::filesystem::remove(scratch / "c/__1_0.distcp");
  Run refused =
      shardwright({"repair", scratch / "c", "--fill", "zero", "--out", scratch / "a", "--yes"});
  CHECK(refused.code == 1);
  CHECK(contains(refused.err, "of the checkpoint"));
  CHECK(contains(refused.err, "--accept-loss"));
  CHECK(std::filesystem::exists(scratch / "a/certificate.json"));
  Run accepted = shardwright({"repair", scratch / "c", "--fill", "zero", "--accept-loss", "--out",
                              scratch / "b", "--yes"});
  CHECK(accepted.code == 0);
}

TEST_CASE("a healthy checkpoint of torch 2.15 answers in one line and is not copied") {
  Scratch scratch;
  std::filesystem::create_directory(scratch / "run");
  const std::string step = scratch / "run/step_9000";
  std::filesystem::copy(std::string(SHW_TEST_DATA) + "/torch-2.15/python-3.11.2", step,
                        std::filesystem::copy_options::recursive);
  Run check = shardwright({"check", step});
  CHECK(check.code == 0);
  CHECK(contains(check.out, "no finding"));
  CHECK(contains(check.out, "\nnote: needs torch 2.15"));
  CHECK_FALSE(contains(check.out, "info"));
  Run repair = shardwright({"repair", step, "--yes"});
  CHECK(repair.code == 0);
  CHECK(contains(repair.out, "Nothing to repair"));
  CHECK(contains(repair.err, "--in-place"));
  CHECK(std::distance(std::filesystem::directory_iterator(scratch / "run"), {}) == 1);
}

TEST_CASE("a mesh that is too small for the demo is answered") {
  Run run = shardwright({"check", step(), "--mesh", "dp=4"});
  CHECK(run.code == 1);
  CHECK(contains(run.out, "64 ranks wrote this, and the mesh (dp 4) has 4"));
}

TEST_CASE("the spec of another model is one finding at the terminal") {
  std::string other = std::string(SHW_TEST_DATA) + "/torch-2.14/healthy_moe_ep/";
  Run run = shardwright({"check", other + "ckpt", "--spec", spec()});
  CHECK(run.code == 1);
  CHECK(contains(run.out, "other-model"));
  CHECK_FALSE(contains(run.out, "missing-key"));
  CHECK(contains(run.out, "6 of 1,142 names agree"));
}

TEST_CASE("the version is a line, or JSON") {
  CHECK(shardwright({"--version"}).out.starts_with("shardwright "));
  CHECK(parsed(shardwright({"--version", "--json"}).out)["schema"] == "shardwright/2");
}

TEST_CASE("command line: -V, help VERB and a path alone do what people try") {
  CHECK(shardwright({"-V"}).out == shardwright({"--version"}).out);
  CHECK(shardwright({"help", "diff"}).out == shardwright({"diff", "--help"}).out);
  CHECK(shardwright({"help"}).out == shardwright({"--help"}).out);
  Run unknown = shardwright({"help", "dif"});
  CHECK(unknown.code == 3);
  CHECK(unknown.err.find("diff") != std::string::npos);
  const std::string checkpoint = demo() + "/step_9000";
  Run alone = shardwright({checkpoint, "--json"});
  Run checked = shardwright({"check", checkpoint, "--json"});
  CHECK(alone.code == checked.code);
  CHECK(parsed(alone.out)["findings"] == parsed(checked.out)["findings"]);
}

TEST_CASE("command line: ls takes patterns, an order and columns") {
  Run run = shardwright({"ls", step(), "*.gate_proj.weight", "--columns", "tensor,bytes"});
  CHECK(run.code == 0);
  CHECK(contains(run.out, "gate_proj.weight  "));
  CHECK_FALSE(contains(run.out, "bfloat16"));
  CHECK_FALSE(contains(run.out, "tensor  "));  // no table head if the output is not a terminal
  Run sorted = shardwright({"ls", step(), "--sort", "bytes", "--reverse", "--columns", "bytes"});
  Run ascending = shardwright({"ls", step(), "--sort", "bytes", "--columns", "bytes"});
  CHECK(sorted.out != ascending.out);
  CHECK(shardwright({"ls", step(), "--columns", "bites"}).code == 3);
}

TEST_CASE("command line: several checkpoints are checked one after the other") {
  const std::string sound = std::string(SHW_TEST_DATA) + "/torch-2.14/healthy_moe_ep/ckpt";
  Run run = shardwright({"check", sound, sound});
  CHECK(run.code == 0);
  CHECK(run.out.find(sound) != run.out.rfind(sound));
  CHECK(shardwright({"check", sound, step(), "--spec", spec()}).code == 1);
  CHECK(shardwright({"check", sound, "/no/such/checkpoint"}).code == 4);
}

TEST_CASE("command line: findings of a rule that is ignored are counted as not checked") {
  Run run = shardwright(
      {"check", step(), "--spec", spec(), "--ignore", "placement-axis-moved", "--json"});
  CHECK(run.code == 0);
  auto answer = parsed(run.out);
  CHECK(answer["findings"].empty());
  CHECK(contains(answer["unjudged"].dump(), "placement-axis-moved"));
  CHECK(shardwright({"check", step(), "--ignore", "placement-axis"}).code == 3);
}

TEST_CASE("command line: a configuration in the checkpoint's folder ignores nothing") {
  Scratch scratch;
  std::filesystem::copy(std::string(SHW_TEST_DATA) + "/torch-2.14/s2_swiglu_t1/ckpt",
                        scratch / "ckpt");
  const std::string check = "$SHARDWRIGHT check ckpt --json --spec " + std::string(SHW_TEST_DATA) +
                            "/torch-2.14/s2_swiglu_t1/spec.json";
  auto found = parsed(shell("cd " + (scratch / "") + " && " + check).out)["findings"];
  REQUIRE_FALSE(found.empty());
  const std::string text = "ignore = [" + found[0]["rule"].dump() + "]";
  for (const char* folder : {"ckpt/", ""}) {
    std::ofstream(scratch / (std::string(folder) + "shardwright.toml")) << text;
    const bool is_own = *folder != 0;
    auto answer = parsed(shell("cd " + (scratch / folder) + " && $SHARDWRIGHT check " +
                               (is_own ? "." : "ckpt") + " --json --spec " + SHW_TEST_DATA +
                               "/torch-2.14/s2_swiglu_t1/spec.json")
                             .out);
    CAPTURE(folder);
    CHECK(answer["findings"].empty() != is_own);
  }
}

TEST_CASE("command line: show prints an entry that is not a tensor") {
  const std::string checkpoint = std::string(SHW_TEST_DATA) + "/torch-2.14/healthy_grid/ckpt";
  const std::string fqn = "object.list";
  Run run = shardwright({"show", checkpoint, fqn});
  CHECK(run.code == 0);
  CHECK(contains(run.out, "not a tensor"));
  CHECK(parsed(shardwright({"show", checkpoint, fqn, "--json"}).out)["fqn"] == fqn);
}

TEST_CASE("command line: every verb is in one group of the help") {
  const std::string help = shardwright({"--help"}).out;
  for (const char* verb :
       {"info",   "ls",     "show",        "map",    "stats",   "hash",       "check",  "explain",
        "diff",   "verify", "plan",        "repair", "reshard", "convert",    "resume", "undo",
        "commit", "report", "export-hdf5", "gui",    "demo",    "completion", "learn"}) {
    CAPTURE(verb);
    const std::string line = "\n  " + std::string(verb) + " ";
    const std::size_t first = help.find(line);
    CHECK(first != std::string::npos);
  }
}

TEST_CASE("a checkpoint that is not there is an I/O error, said as text or as JSON") {
  Run text = shardwright({"info", "/no/such/checkpoint"});
  CHECK(text.code == 4);
  CHECK(text.out.empty());
  CHECK(contains(text.err, "/no/such/checkpoint"));
  Run json = shardwright({"info", "/no/such/checkpoint", "--json"});
  CHECK(json.code == 4);
  Json error = parsed(json.out)["error"];
  CHECK(error.contains("message"));
  CHECK(error.contains("file"));
  CHECK(error.contains("offset"));
}

TEST_CASE("metadata that is cut off is named from where the person is, with the byte") {
  Scratch scratch;
  std::filesystem::create_directories(scratch / "step_1");
  std::filesystem::copy(step() + "/.metadata", scratch / "step_1/.metadata");
  std::filesystem::resize_file(scratch / "step_1/.metadata", 48'213);
  Run text = shardwright({"info", scratch / "step_1"});
  CHECK(text.code == 2);
  CHECK(text.err.starts_with(scratch / "step_1/.metadata: truncated at byte "));
  Json error = parsed(shardwright({"info", scratch / "step_1", "--json"}).out)["error"];
  CHECK(error["file"] == ".metadata");
  CHECK(error["offset"].is_number());
}

TEST_CASE("the demo's defect is named at the terminal with both shapes, and the code is 1") {
  Run run = shardwright({"check", step(), "--spec", spec()});
  CHECK(run.code == 1);
  CHECK(contains(run.out, "placement-axis-moved"));
  CHECK(contains(run.out, "[288, 8192, 640]"));
  CHECK(contains(run.out, "[288, 4096, 1280]"));
  CHECK(contains(run.out, "1 cause, 3 tensors"));
  CHECK(run.out.find('\x1b') == std::string::npos);
}

TEST_CASE("the demo's defect is found without a spec too") {
  Run run = shardwright({"check", step(), "--json"});
  Json report = parsed(run.out);
  CHECK(report["verdict"] != "undecided");
  for (const Json& finding : report["findings"])
    CHECK((finding["severity"] == "info" || finding["rule"] == "placement-axis-moved"));
}

TEST_CASE("fail-on decides the exit code and nothing else") {
  CHECK(shardwright({"check", step(), "--spec", spec(), "--fail-on", "never"}).code == 0);
  CHECK(shardwright({"check", step(), "--spec", spec(), "--fail-on", "error"}).code == 1);
}

TEST_CASE("colour is for terminals, unless it is asked for") {
  CHECK(
      contains(shardwright({"check", step(), "--spec", spec(), "--color", "always"}).out, "\x1b["));
  CHECK(contains(shardwright({"check", step(), "--spec", spec()}, {"CLICOLOR_FORCE=1"}).out,
                 "\x1b["));
  Run no = shardwright({"check", step(), "--spec", spec()}, {"CLICOLOR_FORCE=1", "NO_COLOR=1"});
  CHECK_FALSE(contains(no.out, "\x1b["));
}

TEST_CASE("info, ls, show and map answer in JSON") {
  Json info = parsed(shardwright({"info", step(), "--json"}).out);
  CHECK(info["tensors"] == 1142);
  CHECK(info["ranks"] == 64);
  Json show = parsed(shardwright({"show", step(), kDown, "--json"}).out);
  CHECK(show["shape"] == Json{288, 8192, 640});
  CHECK(show["chunks"].size() == 64);
  Json map = parsed(shardwright({"map", step(), kDown, "--spec", spec(), "--json"}).out);
  CHECK(map["saved"]["tiles"].size() == 64);
  CHECK(map["expected"]["shape"] == Json{288, 4096, 1280});
  CHECK(parsed(shardwright({"ls", step(), "--json"}).out)["tensors"].size() == 1142);
}

TEST_CASE("ls counts numbers as numbers and narrows by words") {
  Run run = shardwright({"ls", step(), "q_proj.weight", "shape:[256,4096]"});
  CHECK(run.code == 0);
  CHECK(run.out.find("layers.2.self") < run.out.find("layers.10.self"));
  CHECK_FALSE(contains(run.out, "down_proj"));
}

TEST_CASE("show takes the checkpoint and the name in either order, and helps with the name") {
  Run one = shardwright({"show", step(), "train.step", "--values"});
  Run other = shardwright({"show", "train.step", step(), "--values"});
  CHECK(one.code == 0);
  CHECK(one.out == other.out);
  CHECK(contains(one.out, "9000"));
  Run wrong = shardwright({"show", step(), "train.stepp"});
  CHECK(wrong.code == 1);
  CHECK(contains(wrong.err, "did you mean train.step"));
}

TEST_CASE("map draws boxes, in ASCII where the locale is not UTF-8") {
  Run utf8 = shardwright({"map", step(), kDown, "--spec", spec()}, {"LC_ALL=C.UTF-8"});
  CHECK(contains(utf8.out, "┌"));
  CHECK(contains(utf8.out, "rank 32"));
  Run ascii = shardwright({"map", step(), kDown, "--spec", spec()}, {"LC_ALL=C"});
  CHECK(contains(ascii.out, "+-"));
  for (char c : ascii.out) CHECK(static_cast<unsigned char>(c) < 0x80);
}

TEST_CASE("repair writes nothing unless someone said yes") {
  Run run = shardwright({"repair", step(), "--spec", spec()});
  CHECK(run.code == 3);
  CHECK_FALSE(std::filesystem::exists(step() + "-repaired"));
}

TEST_CASE("plan, repair and verify hang together, and the repaired one is clean") {
  const std::string broken = SHW_TEST_DATA "/real-code/s1_automodel_ep2_shard2";
  const std::string wanted = broken + "/spec.json";
  Scratch scratch;
  Run plan = shardwright({"plan", broken + "/ckpt", "--spec", wanted, "--json"});
  CHECK(plan.code == 0);
  CHECK(parsed(plan.out)["steps"].size() >= 1);
  std::ofstream(scratch / "plan.json") << plan.out;
  std::string out = scratch / "mended";
  Run repair = shardwright({"repair", broken + "/ckpt", "--plan", scratch / "plan.json", "--out",
                            out, "--yes", "--json"});
  REQUIRE(repair.code == 0);
  CHECK(std::filesystem::exists(parsed(repair.out)["certificate"].get<std::string>()));
  CHECK(parsed(shardwright({"verify", out, "--json"}).out)["verdict"] == "proved");
  CHECK(shardwright({"check", out, "--spec", wanted, "--data"}).code == 0);
  Run again = shardwright({"repair", out, "--spec", wanted, "--yes", "--json"});
  CHECK(again.code == 0);
  CHECK(parsed(again.out)["output"] == out);
  CHECK(parsed(again.out)["repaired"] == false);
}

TEST_CASE("an in-place repair is taken back by undo, byte for byte") {
  Scratch scratch;
  std::filesystem::create_directories(scratch / "c");
  Run made = shardwright({"demo", scratch / "c", "--quiet"});
  REQUIRE(made.code == 0);
  std::string copy = scratch / "c/step_9000";
  auto metadata = [&] {
    std::ifstream file(copy + "/.metadata", std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  std::string before = metadata();
  CHECK(shardwright({"repair", copy, "--spec", spec(), "--in-place", "--yes"}).code == 0);
  CHECK(metadata() != before);
  CHECK(shardwright({"check", copy, "--spec", spec()}).code == 0);
  CHECK(shardwright({"undo", copy}).code == 0);
  CHECK(metadata() == before);
  CHECK(shardwright({"undo", copy}).code == 3);
}

TEST_CASE("the report is a page or Markdown, by the name of its file") {
  Scratch scratch;
  CHECK(shardwright({"report", step(), "--spec", spec(), "--out", scratch / "r.html"}).code == 1);
  std::ifstream page(scratch / "r.html");
  std::string text(std::istreambuf_iterator<char>(page), {});
  CHECK(text.starts_with("<!doctype html>"));
  CHECK(contains(text, "[288, 4096, 1280]"));
  CHECK(shardwright({"report", step(), "--spec", spec()}).out.starts_with("# "));
}

TEST_CASE("a reader that leaves early is not an error") {
  Run run = shell("set -o pipefail; \"$SHARDWRIGHT\" ls \"$DEMO/step_9000\" | head -1 >/dev/null");
  CHECK(run.code == 0);
}

TEST_CASE("a full disk behind stdout is an I/O error") {
  CHECK(shell("\"$SHARDWRIGHT\" ls \"$DEMO/step_9000\" > /dev/full").code == 4);
}

TEST_CASE("the demo is the same every time and refuses a folder that is not its own") {
  Scratch scratch;
  REQUIRE(shardwright({"demo", scratch / "d", "--quiet"}).code == 0);
  // Names of all files, contents of two small ones, and the beginnings of some sparse ones: reading
  // 10 GB of holes takes minutes.
  Run same = shell("cd '" + (scratch / "d") +
                   "' && diff <(find . | sort) <(cd \"$DEMO\" && find . | sort) && "
                   "for f in spec.json step_9000/.metadata step_9000/__{0,17,63}_0.distcp; do "
                   "cmp -n 1000000 $f \"$DEMO/$f\" || exit 1; done");
  CHECK(same.code == 0);
  CHECK(shardwright({"demo", scratch / "d", "--quiet"}).code == 0);
  std::filesystem::create_directories(scratch / "mine/step_9000");
  CHECK(shardwright({"demo", scratch / "mine"}).code == 3);
  Run inside = shardwright({"demo", scratch / "d/step_9000"});
  CHECK(inside.code == 3);
  CHECK(inside.err.find("is a checkpoint") != std::string::npos);
}

TEST_CASE("the demo takes less than 200 MB of disk") {
  Run run = shell("du -sm \"$DEMO\" | cut -f1");
  CHECK(std::stoi(run.out) < 200);
}

TEST_CASE("tables are as wide as who reads them says, and have one line per tensor in a pipe") {
  auto columns = [](const std::string& line) {
    return std::count_if(line.begin(), line.end(),
                         [](char c) { return (static_cast<unsigned char>(c) >> 6) != 2; });
  };
  for (const std::vector<std::string>& verb :
       {std::vector<std::string>{"ls", step()}, {"stats", step(), kDown}}) {
    std::istringstream lines(shardwright(verb, {"COLUMNS=60"}).out);
    bool whole = false;
    for (std::string line; std::getline(lines, line);) {
      CHECK_MESSAGE((columns(line) <= 60 || line.find(' ') == line.npos), line);
      whole = whole || line == kDown;
    }
    CHECK(whole);  // names are never cut, since users copy them
  }
  Run wide = shardwright({"ls", step()});
  CHECK(contains(wide.out, "lm_head.weight   "));
  CHECK(contains(wide.out, "29, 38, 47, 48, 57\n"));
  Run plain = shardwright({"map", step(), kDown, "--plain", "--color", "always"}, {"LANG=C.UTF-8"});
  CHECK(plain.code == 0);
  for (char c : plain.out) CHECK_MESSAGE((c == '\n' || (c >= ' ' && c <= '~')), plain.out);
}
