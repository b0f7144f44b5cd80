#include "core/report/text.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "core/formats/dcp/dcp_formats.h"
#include "core/model/builder.h"
#include "core/report/listing.h"
#include "core/report/text_words.h"
#include "core/report/visible_controls.h"

using namespace shw;

namespace {

// The demo's layer: 64 ranks, ep_shard 2 by ep 32, recorded on the wrong axis.
std::shared_ptr<const Checkpoint> demo() {
  CheckpointBuilder builder;
  Provenance provenance;
  provenance.torch = "2.14";
  builder.set_provenance(provenance);
  builder.set_format(kDcpFormat);
  struct Part {
    const char* name;
    Extents shape, tile;
  };
  const Part parts[] = {{"down_proj", {288, 8192, 640}, {9, 4096, 640}},
                        {"gate_proj", {288, 2560, 2048}, {9, 1280, 2048}},
                        {"up_proj", {288, 2560, 2048}, {9, 1280, 2048}}};
  for (const Part& part : parts) {
    builder.add_tensor("model.layers.3.moe.experts." + std::string(part.name) + ".weight",
                       Dtype::kBfloat16, part.shape);
    for (std::int64_t rank = 0; rank < 64; ++rank) {
      FileId file = builder.file("__" + std::to_string(rank) + "_0.distcp");
      builder.add_chunk(Extents{rank % 32 * 9, rank / 32 * part.tile[1], 0}, part.tile,
                        ItemPlace{file, 0, 1});
    }
  }
  return builder.finish();
}

std::shared_ptr<Spec> demo_spec() {
  auto spec = parse_spec(R"J({
      "model.layers.3.moe.experts.down_proj.weight": {"shape": [288, 4096, 1280],
          "mesh": {"ep_shard": 2, "ep": 32}, "placements": ["Shard(2)", "Shard(0)"]},
      "model.layers.3.moe.experts.gate_proj.weight": {"shape": [288, 1280, 4096]},
      "model.layers.3.moe.experts.up_proj.weight": {"shape": [288, 1280, 4096]}})J",
                         "spec.json");
  REQUIRE(spec.has_value());
  return std::make_shared<Spec>(std::move(*spec));
}

}  // namespace

TEST_CASE("the demo reads as the sketch does") {
  auto checkpoint = demo();
  auto report = check(*checkpoint, CheckOptions{Depth::kMetadata, demo_spec(), std::nullopt});
  REQUIRE(report.has_value());
  TextOptions options;
  options.checkpoint = "step_9000";
  options.spec = "spec.json";
  const char* expected =
      R"(DCP, torch 2.14 · 3 tensors · 64 ranks · 9.06 GB · coverage complete

error  placement-axis-moved   3 tensors: will not load
       model.layers.3.moe.experts.down_proj.weight   saved [288, 8192, 640]    expected [288, 4096, 1280]
       ….gate_proj.weight                            saved [288, 2560, 2048]   expected [288, 1280, 4096]
       ….up_proj.weight                              the same
       Dim 1 is twice as long as expected and dim 2 half as long: the shards were written after
       transposing dims 1 and 2, but recorded with the placements from before (Shard(1), Shard(0)).
       Lossless: correct the offsets of 192 chunks, no byte moves.
       shardwright repair step_9000 --spec spec.json

1 cause, 3 tensors (depth metadata)
not checked:
  - row order inside the chunks: needs --against
  - placements of 2 tensors: needs --mesh, or mesh and placements in --spec
  - files, headers and values: needs the folder with the data files
)";
  CHECK(check_to_text(*checkpoint, *report, options) == expected);
}

TEST_CASE("colour comes only when asked, and takes nothing else away") {
  auto checkpoint = demo();
  auto report = check(*checkpoint, CheckOptions{Depth::kMetadata, demo_spec(), std::nullopt});
  TextOptions options;
  std::string plain = check_to_text(*checkpoint, *report, options);
  CHECK(plain.find('\x1b') == std::string::npos);
  options.colour = true;
  std::string coloured = check_to_text(*checkpoint, *report, options);
  CHECK(coloured.find('\x1b') != std::string::npos);
  std::string stripped;
  for (std::size_t i = 0; i < coloured.size(); ++i) {
    if (coloured[i] == '\x1b')
      i = coloured.find('m', i);
    else
      stripped += coloured[i];
  }
  CHECK(stripped == plain);
}

TEST_CASE("a clean checkpoint has no finding and says what was not checked") {
  CheckpointBuilder builder;
  builder.add_tensor("w", Dtype::kFloat32, Extents{});
  builder.add_chunk({}, {}, ItemPlace{builder.file("__0_0.distcp"), 0, 1});
  auto checkpoint = builder.finish();
  auto report = check(*checkpoint, CheckOptions{Depth::kMetadata, nullptr, std::nullopt});
  std::string text = check_to_text(*checkpoint, *report, {});
  CHECK(text.find("no finding (depth metadata)") != std::string::npos);
  CHECK(text.find("clean") == std::string::npos);
  CHECK(text.find("not checked:\n  - names, shapes and row order") != std::string::npos);
  CHECK(text.find("--spec or --against") != std::string::npos);
}

TEST_CASE("a shape that is covered while elements are lost is complete as recorded alone") {
  auto checkpoint = demo();
  auto report = check(*checkpoint, CheckOptions{Depth::kMetadata, demo_spec(), std::nullopt});
  REQUIRE(report.has_value());
  REQUIRE_FALSE(report->findings.empty());
  report->findings[0].consequence = Consequence::kDataLost;
  std::string text = check_to_text(*checkpoint, *report, {});
  CHECK(text.substr(0, text.find('\n')).ends_with("coverage complete as recorded"));
}

TEST_CASE("one tensor that nothing is expected of is spoken of as one") {
  auto checkpoint = demo();
  auto cause_of = [&](const char* fewer) {
    auto part = parse_spec(fewer, "spec.json");
    REQUIRE(part.has_value());
    auto report = check(
        *checkpoint, CheckOptions{Depth::kMetadata, std::make_shared<Spec>(*part), std::nullopt});
    REQUIRE(report.has_value());
    for (const Finding& finding : report->findings)
      if (finding.rule == "unexpected-key") return finding.cause;
    return std::string();
  };
  CHECK(cause_of(R"J({"model.layers.3.moe.experts.down_proj.weight": {"shape": [288, 8192, 640]},
      "model.layers.3.moe.experts.up_proj.weight": {"shape": [288, 2560, 2048]}})J")
            .find("nothing is expected of it, so") != std::string::npos);
  CHECK(
      cause_of(R"J({"model.layers.3.moe.experts.down_proj.weight": {"shape": [288, 8192, 640]}})J")
          .find("nothing is expected of them, so") != std::string::npos);
}

TEST_CASE("metadata that is rewritten is not counted as a tensor") {
  Plan plan;
  Operation rewrite;
  rewrite.kind = OperationKind::kRewriteMetadata;
  rewrite.rule = "portability";
  rewrite.subjects = {".metadata"};
  plan.operations.push_back(rewrite);
  std::string text = plan_to_text(plan, {});
  CHECK(text.find("tensor,") == std::string::npos);
  CHECK(text.find("1 tensor") == std::string::npos);
  CHECK(text.find("rewrite-metadata   for portability") != std::string::npos);
  CHECK(text.find(".metadata\n") != std::string::npos);
}

TEST_CASE("names from files cannot speak to the terminal") {
  CHECK(printable("a\x1b[31mb\n\x7f") == "a\\x1b[31mb\\x0a\\x7f");
  CHECK(printable("\xC2\x9B"
                  "31m · …") == "\\x9b31m · …");
  // Without escapes it would look like w[exe.png].
  CHECK(printable("w[\u202Egnp.exe\u202C]") == "w[\\u202egnp.exe\\u202c]");
  CHECK(printable("a\u200Fb\u2028c\uFEFFd") == "a\\u200fb\\u2028c\\ufeffd");
  CHECK(printable("größe 层 \U0001F600") == "größe 层 \U0001F600");
  CHECK(printable("\xff\xC0\x80\xED\xA0\x80\xE5\xB1") ==
        "\\xff\\xc0\\x80\\xed\\xa0\\x80\\xe5\\xb1");
  CheckpointBuilder builder;
  builder.add_tensor("w\x1b]0;x\x07", Dtype::kFloat32, Extents{4});
  auto checkpoint = builder.finish();
  auto report = check(*checkpoint, CheckOptions{Depth::kMetadata, nullptr, std::nullopt});
  CHECK(check_to_text(*checkpoint, *report, {}).find('\x1b') == std::string::npos);
}

TEST_CASE("no sentence is wider than asked, and no word is lost") {
  std::string text = "one two three four five six seven eight nine ten eleven twelve";
  CHECK(wrapped(text, 4, 30) ==
        "    one two three four five\n    six seven eight nine ten\n    eleven twelve");
}

TEST_CASE("wrapped text leaves a command whole") {
  CHECK(wrapped("Try `sw check a b c d e f g h i j`, or wait. A lone ` is a word.", 0, 20) ==
        "Try\n`sw check a b c d e f g h i j`,\nor wait. A lone ` is\na word.");
}

TEST_CASE("an error says where, what, and what to do, and its byte once") {
  Error error{ErrorKind::kDamaged, "a string of 4,096 bytes was announced, 310 are left",
              Place{"step_9000/.metadata", 48213}, "The save was probably interrupted."};
  CHECK(error_to_text(error) ==
        "step_9000/.metadata: at byte 48,213: a string of 4,096 bytes was announced, 310 are "
        "left.\nThe save was probably interrupted.\n");
  error.message = "truncated at byte 48,213";
  error.advice.clear();
  CHECK(error_to_text(error) == "step_9000/.metadata: truncated at byte 48,213.\n");
}

TEST_CASE("a path is typed as the shell reads it") {
  CHECK(shell_word("step_9000/a.b") == "step_9000/a.b");
  CHECK(shell_word("my model") == "'my model'");
  CHECK(shell_word("it's") == "'it'\\''s'");
  CHECK(shell_word("-x") == "'-x'");
  CHECK(shell_word("") == "''");
}

TEST_CASE("a path that a terminal would obey is typed in escapes that name the same bytes") {
  CHECK(shell_word("a\x1b[31m") == "$'a\\033[31m'");
  CHECK(shell_word("two\nlines 1") == "$'two\\012lines 1'");
  CHECK(shell_word("it's\x07\\") == "$'it\\'s\\007\\\\'");
  CHECK(shell_word("\u202egnp.exe") == "$'\\342\\200\\256gnp.exe'");
  CHECK(shell_word("\xff"
                   "7 \u00e9") == "$'\\3777 \u00e9'");
}

TEST_CASE("a tensor is named where the message does not name it, and only there") {
  auto said = [](const std::string& tensor, const std::string& message) {
    return error_to_text({ErrorKind::kDamaged, message, {"f.pt", std::nullopt, tensor}});
  };
  CHECK(said("a", "has a hole") == "f.pt, a: has a hole.\n");
  CHECK(said("hole", "has a hole") == "f.pt, hole: has a hole.\n");
  CHECK(said("w.1", "next to w.10 nothing") == "f.pt, w.1: next to w.10 nothing.\n");
  CHECK(said("a", "the tensor \"a\" has a hole") == "f.pt: the tensor \"a\" has a hole.\n");
  CHECK(said("model.w", "of model.w, nothing") == "f.pt: of model.w, nothing.\n");
  CHECK(said("model.w", "nothing is left of model.w.") == "f.pt: nothing is left of model.w.\n");
  CHECK(error_to_text({ErrorKind::kDamaged, "byte 12 is wrong", {"f.pt", 1}}) ==
        "f.pt: at byte 1: byte 12 is wrong.\n");
}

TEST_CASE("visible controls: what a terminal would obey is spelled out, and JSON stays the same") {
  CHECK(with_visible_controls("plain\n\tt\xc3\xa9 \xe2\x86\x92 \x1b[1mbold") ==
        "plain\n\tt\xc3\xa9 \xe2\x86\x92 \x1b[1mbold");
  CHECK(with_visible_controls("a\x7f"
                              "b") == "a\\u007fb");
  CHECK(with_visible_controls("a\xc2\x9b"
                              "31m") == "a\\u009b31m");
  // The second byte of this letter (U+1F642) is 0x9F.
  CHECK(with_visible_controls("\xf0\x9f\x99\x82") == "\xf0\x9f\x99\x82");
  CHECK(with_visible_controls("\xe2\x80\xae\xe2\x81\xa6") == "\\u202e\\u2066");
  CHECK(with_visible_controls("\x9b"
                              "x\xe2") == "\\u009bx\xe2");
  const std::string json = nlohmann::json("w\x7f\xc2\x9b\xe2\x80\xae").dump();
  const std::string shown = with_visible_controls(json);
  CHECK(shown != json);
  CHECK(nlohmann::json::parse(shown) == nlohmann::json::parse(json));
}

TEST_CASE("text: a finding that a conversion mends names the whole command") {
  auto checkpoint = demo();
  CheckReport report;
  report.verdict = Verdict::kFindings;
  Finding finding;
  finding.rule = "bad-record";
  finding.severity = Severity::kWarning;
  finding.evidence = {{"convert_to", std::string("safetensors")}};
  report.findings.push_back(finding);
  TextOptions options;
  options.checkpoint = "step 9000";
  const std::string text = check_to_text(*checkpoint, report, options);
  CHECK(text.find("shardwright convert 'step 9000' --to safetensors") != std::string::npos);
  CHECK(text.find("No safe remedy") == std::string::npos);
}
