// explain as a process: rules, error messages and forecasts.
#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "app/answer.h"
#include "app/process.h"

using namespace shw::test;
using Json = nlohmann::json;

TEST_CASE("explain teaches every rule that check can print") {
  Json rules = parsed(shardwright({"explain", "--json"}).out)["rules"];
  CHECK(rules.size() > 10);
  for (const Json& rule : rules)
    CHECK(shardwright({"explain", rule["rule"].get<std::string>()}).code == 0);
  Run wrong = shardwright({"explain", "coverage-gab"});
  CHECK(wrong.code == 3);
  CHECK(contains(wrong.err, "coverage-gap"));
}

TEST_CASE("explain ranks what an error message can mean, from an argument and from stdin") {
  const std::string text =
      "ValueError: Size mismatch between saved torch.Size([64]) and current: torch.Size([128]) for "
      "optimizer.state.0.exp_avg";
  Json json = parsed(shardwright({"explain", text, "--world", "4:2", "--json"}).out);
  CHECK(json["schema"] == "shardwright/2");
  CHECK(json["hypotheses"][0]["id"] == "H-L");
  CHECK(json["hypotheses"][0]["rule"] == "local-saved-as-global");
  CHECK(json["hypotheses"][0]["rank"] == 1);
  CHECK(json["hypotheses"][0]["evidence"]["parameter_dim"] == 256);
  CHECK(json["parsed"]["messages"][0]["saved"] == Json::array({64}));
  CHECK(json["parsed"]["world"]["save"] == 4);
  Run piped = shell("printf 'noise\\n%s\\nnoise' '" + text + "' | $SHARDWRIGHT explain -");
  CHECK(piped.code == 0);
  CHECK(contains(piped.out, "saved [64]   current [128]   optimizer.state.0.exp_avg"));
  CHECK(contains(piped.out, "--world"));
}

TEST_CASE("explain reads a pasted message that begins with dashes, and still refuses options") {
  for (const char* text :
       {"- **Exception Message:** Error while deserializing header: HeaderTooLarge",
        "----> 1 load_file(path)\nSafetensorError: Error while deserializing header: "
        "HeaderTooLarge"}) {
    CAPTURE(text);
    const Run run = shardwright({"explain", text, "--json"});
    CHECK(run.code == 0);
    CHECK(parsed(run.out)["parsed"]["messages"].size() == 1);
  }
  CHECK(shardwright({"explain", "--no-such-option"}).code == 3);
  CHECK(shardwright({"explain", "--no-such-option=a b"}).code == 3);
}

TEST_CASE("explain answers with the likeliest cause in its first line and without codes") {
  Run run = shardwright({"explain", "No such file or directory: '/x/step_3/.metadata'"});
  CHECK(run.code == 0);
  CHECK(run.out.starts_with("Most likely: the save did not finish"));
  Run shapes = shardwright({"explain", "saved [2, 3, 4] current [2, 6, 2] for l.0.moe.down_proj"});
  CHECK_FALSE(contains(shapes.out, "H-"));
  CHECK(shardwright({"explain", "headertoolarge"}).code == 0);
  CHECK_FALSE(contains(shapes.out, "%"));
  Json json = parsed(
      shardwright({"explain", "saved [64] current [128] for optimizer.state.0.exp_avg", "--json"})
          .out);
  double sum = json["none_of_these"].get<double>();
  for (const Json& one : json["hypotheses"]) sum += one["confidence"].get<double>();
  CHECK(sum == doctest::Approx(1));
}

TEST_CASE(
    "explain foresees what saving a gated weight will come to, before there is a checkpoint") {
  struct Split {
    const char* rows;
    const char* tp;
    const char* outcome;
    const char* text;
  };
  const Split splits[] = {
      // failures.md F2.4
      {"4,8", "1", "bounds", "stops at rank 1: bounds, off 2+4>4"},
      {"5,7", "1", "odd-rows", "stops at rank 0: 5 rows cannot be halved"},
      {"0,4,4", "1", "silent", "silent: 1 row of 2 is saved, the others are lost without an error"},
      {"2,2,2,2", "1", "silent",
       "silent: 1 row of 4 is saved, the others are lost without an error"},
      {"0,0,8", "1", "harmless", "harmless: every row is saved in its place"},
      {"4,4", "2", "silent", "silent: 1 row of 4 is saved, the others are lost without an error"},
      {"6,6", "2", "reshape", "stops at rank 0: its half is not a whole number of rows"},
      {"0,8", "2", "bounds", ""},
  };
  for (const Split& split : splits) {
    CAPTURE(std::string(split.rows));
    Run run = shardwright(
        {"explain", "glu-split-local", "--rows", split.rows, "--tp", split.tp, "--json"});
    CHECK(run.code == 0);
    Json json = parsed(run.out);
    CHECK(json["schema"] == "shardwright/2");
    CHECK(json["outcome"] == split.outcome);
    CHECK(json["loses"] == (std::string(split.outcome) == "silent"));
    if (split.text[0] != 0) CHECK(json["text"] == split.text);
    Run text = shardwright({"explain", "glu-split-local", "--rows", split.rows, "--tp", split.tp});
    CHECK(text.code == 0);
    CHECK(text.out.find(json["text"].get<std::string>()) != text.out.npos);
  }
  for (std::vector<std::string> wrong :
       {std::vector<std::string>{"glu-split-local", "--rows", "4,x"},
        {"glu-split-local", "--rows", "4,,4"},
        {"glu-split-local", "--rows", "3,4"},
        {"glu-split-local", "--rows", "4,4", "--tp", "0"},
        {"glu-split-local", "--tp", "2"},
        {"coverage-gap", "--rows", "4,4"}}) {
    wrong.insert(wrong.begin(), "explain");
    CHECK(shardwright(wrong).code == 3);
  }
}

TEST_CASE("explain says which messages it understands when it did not understand one") {
  Run run = shardwright({"explain", "the weather in Paris is fine"});
  CHECK(run.code == 2);
  CHECK(run.out.empty());
  CHECK(contains(run.err, "Size mismatch between saved"));
  Run json = shardwright({"explain", "the weather in Paris is fine", "--json"});
  CHECK(json.code == 2);
  CHECK(parsed(json.out)["error"]["message"].is_string());
  Run near = shardwright({"explain", "the checkpoint used a DP world size of 8, current is 4"});
  CHECK(near.code == 2);
  CHECK(
      contains(near.err,
               "the most similar known one is \"The checkpoint being loaded used a DP world size"));
  CHECK(shardwright({"explain", "saved [1] current [2]", "--world", "four"}).code == 3);
}

TEST_CASE("explain: with a checkpoint, names of the message are looked up in it") {
  const std::string path = std::string(SHW_TEST_DATA) + "/torch-2.6/healthy_fsdp/ckpt";
  const Json listed = parsed(shardwright({"ls", path, "--json"}).out);
  const std::string known = listed["tensors"][0]["fqn"].get<std::string>();
  const std::string text =
      "RuntimeError: Missing key(s) in state_dict: \"module." + known + "\", \"no.such.weight\". ";
  const Json lookup = parsed(shardwright({"explain", text, path, "--json"}).out)["lookup"];
  CHECK(lookup["nowhere"] == 1);
  CHECK(lookup["under_other_name"] == 1);
  CHECK(lookup["names"][0]["stored"] == known);
  const Run told = shardwright({"explain", text, path});
  CHECK(told.code == 0);
  CHECK(contains(told.out, "In the checkpoint"));
  CHECK(contains(told.out, "no.such.weight is not in the checkpoint"));
  CHECK_FALSE(contains(told.out, "CHECKPOINT"));
}

TEST_CASE("explain: a checkpoint that cannot be opened does not hide the explanation") {
  const std::string text = "RuntimeError: Missing key(s) in state_dict: \"a.weight\". ";
  const Run told = shardwright({"explain", text, "/no/such/folder"});
  CHECK(told.code == 2);
  CHECK(contains(told.out, "cannot be opened"));
  const Json json = parsed(shardwright({"explain", text, "/no/such/folder", "--json"}).out);
  CHECK_FALSE(json["hypotheses"].empty());
  CHECK(json["lookup"]["unopened"].is_string());
}

TEST_CASE("explain: what a check of the checkpoint finds comes before what the message suggests") {
  Scratch scratch;
  const std::string path = scratch / "model.safetensors";
  std::string header = R"({"a.weight":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  const std::string length{static_cast<char>(header.size()), 0, 0, 0, 0, 0, 0, 0};
  std::ofstream(path, std::ios::binary) << length << header << std::string(8 + 4, '\1');
  const std::string text = "SafetensorError: Error while deserializing header: InvalidHeaderLength";
  const Run told = shardwright({"explain", text, path});
  CHECK(told.code == 0);
  CHECK(contains(told.out, "unowned-bytes"));
  CHECK(told.out.find("unowned-bytes") < told.out.find("The message alone says"));
  const Json json = parsed(shardwright({"explain", text, path, "--json"}).out);
  CHECK(json["lookup"]["findings"][0]["rule"] == "unowned-bytes");
  CHECK(json["lookup"]["checked"] == "headers");
  CHECK(json["lookup"]["undecided"] == false);
}
