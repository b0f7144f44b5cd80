#include <doctest/doctest.h>

#include <algorithm>

#include "core/formats/dcp/dcp_formats.h"
#include "core/model/builder.h"
#include "core/report/ci_forms.h"
#include "core/report/map_text.h"
#include "core/report/report.h"
#include "core/spec/spec.h"

using namespace shw;

namespace {

// Two by two tiles, written by ranks 0 to 3, with a name that would break unescaped HTML and
// Markdown.
constexpr const char* kName = "</code><script>alert(1)</script>|`a`\x1b[31m";

std::shared_ptr<const Checkpoint> four_tiles(std::int64_t rows = 8) {
  CheckpointBuilder builder;
  builder.set_format(kDcpFormat);
  builder.add_tensor(kName, Dtype::kBfloat16, Extents{rows, 6});
  for (std::int64_t i = 0; i < 4; ++i) {
    FileId file = builder.file("__" + std::to_string(i) + "_0.distcp");
    builder.add_chunk(Extents{i / 2 * (rows / 2), i % 2 * 3}, Extents{rows / 2, 3}, {file, 0, 64});
  }
  return builder.finish();
}

CheckReport one_finding() {
  Finding finding;
  finding.rule = "shape-mismatch";
  finding.subjects = {kName};
  finding.cause = "It is <b>not</b> what the model expects.";
  finding.evidence = {{"saved", Extents{8, 6}}, {"expected", Extents{4, 12}}};
  CheckReport report;
  report.verdict = Verdict::kFindings;
  report.findings = {finding};
  return report;
}

}  // namespace

TEST_CASE("a name with markup in it stays text in both reports") {
  auto checkpoint = four_tiles();
  CheckReport check = one_finding();
  ReportInput input{*checkpoint, check, nullptr, nullptr, "shardwright check 'a<b'"};
  std::string html = report_html(input);
  CHECK(html.find("<script") == std::string::npos);
  CHECK(html.find("&lt;script&gt;") != std::string::npos);
  CHECK(html.find("<b>not</b>") == std::string::npos);
  CHECK(html.find('\x1b') == std::string::npos);
  std::string markdown = report_markdown(input);
  CHECK(markdown.find('\x1b') == std::string::npos);
  CHECK(markdown.find("<b>not") == std::string::npos);
}

TEST_CASE("the page refers to nothing outside itself and marks the numbers that differ") {
  auto checkpoint = four_tiles();
  CheckReport check = one_finding();
  std::string html = report_html({*checkpoint, check, nullptr, nullptr, "shardwright check x"});
  for (const char* outside : {"http://", "https://", "<link", "src=", "@import", "url("})
    CHECK(html.find(outside) == std::string::npos);
  CHECK(html.find("<svg") != std::string::npos);
  CHECK(html.find("<b class=\"bad\">8</b>") != std::string::npos);
  CHECK(html.find("rank 3") != std::string::npos);
}

TEST_CASE("a page about many tensors says how many it leaves out and stays small") {
  CheckpointBuilder builder;
  builder.set_format(kDcpFormat);
  FileId file = builder.file("__0_0.distcp");
  for (int i = 0; i < 92'000; ++i) {
    builder.add_tensor("model.layers." + std::to_string(i) + ".weight", Dtype::kBfloat16,
                       Extents{4});
    builder.add_chunk(Extents{0}, Extents{4}, {file, 0, 64});
  }
  auto checkpoint = builder.finish();
  CheckReport check;
  std::string html = report_html({*checkpoint, check, nullptr, nullptr, ""});
  CHECK(html.size() < 5'000'000);
  CHECK(html.find("1,000 of 92,000 tensors are listed") != std::string::npos);
}

TEST_CASE("a page says what the baseline knows and what is required") {
  auto checkpoint = four_tiles();
  CheckReport check = one_finding();
  const Baseline baseline = baseline_from_json(check_to_json(check, {}), "b.json").value();
  const std::vector<PolicyAnswer> policies = {
      {"finite", PolicyVerdict::kBroken, "1 tensor with NaN", {kName}}};
  CheckContext asked{"ck", "", "known/b.json", &baseline, policies};
  ReportInput input{*checkpoint, check, nullptr, nullptr, "shardwright check x"};
  for (bool is_asked : {false, true}) {
    if (is_asked) input.asked = &asked;
    for (const std::string& page : {report_html(input), report_markdown(input)}) {
      auto has = [&](const char* part) { return page.find(part) != std::string::npos; };
      CHECK(has("known before") == is_asked);
      CHECK(has("known/b.json knows 1 of 1 finding") == is_asked);
      CHECK(has("require finite: 1 tensor with NaN") == is_asked);
    }
    CHECK(report_html(input).find("<script") == std::string::npos);
  }
  // A page shows broken and undecided policies even without findings.
  check.findings.clear();
  check.verdict = Verdict::kClean;
  CHECK(report_html(input).find("<header class=\"error\">") != std::string::npos);
  const std::vector<PolicyAnswer> open = {{"finite", PolicyVerdict::kUndecided, "no --data", {}}};
  asked.policies = open;
  CHECK(report_html(input).find("<header class=\"warning\">") != std::string::npos);
  input.asked = nullptr;
  CHECK(report_html(input).find("<header class=\"clean\">") != std::string::npos);
}

TEST_CASE("the map draws each tile with its rank, saved next to expected") {
  TiledTensor saved{{4, 2}, {{{{0, 0}, {2, 2}}, 0}, {{{2, 0}, {2, 2}}, 1}}};
  TiledTensor expected{{2, 4}, {{{{0, 0}, {2, 2}}, 0}, {{{0, 2}, {2, 2}}, 1}}};
  std::string text = map_to_text("w", saved, &expected, {false, false, 60});
  CHECK(text ==
        "w\n"
        "rows dim 0, columns dim 1\n"
        "\n"
        "saved [4, 2]       expected [2, 4]\n"
        "+-------------+    +-------------+------------+\n"
        "|             |    |             |            |\n"
        "|             |    |             |            |\n"
        "|   rank 0    |    |   rank 0    |   rank 1   |\n"
        "|             |    |             |            |\n"
        "|             |    |             |            |\n"
        "|             |    |             |            |\n"
        "+-------------+    +-------------+------------+\n"
        "|             |\n"
        "|             |\n"
        "|   rank 1    |\n"
        "|             |\n"
        "|             |\n"
        "+-------------+\n");
}

TEST_CASE("a tile is on the colour of its writer, and nothing moves because of it") {
  TiledTensor saved{{4, 2}, {{{{0, 0}, {2, 2}}, 0}, {{{2, 0}, {2, 2}}, 1}}};
  Palette palette{2, 1};
  TextStyle style{true, false, 60, true};
  std::string plain = map_to_text("w", saved, nullptr, {false, false, 60});
  for (bool millions : {true, false}) {
    style.millions = millions;
    std::string text = map_to_text("w", saved, nullptr, style, &palette), bare;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '\x1b')
        i = text.find('m', i);
      else
        bare += text[i];
    }
    CHECK(bare == plain);
    // The ground of rank 0 is left before its frame is, and rank 1 has another.
    const Srgb colour = palette.srgb(0);
    std::string first = millions ? "\x1b[48;2;" + std::to_string(colour.red) + ";" +
                                       std::to_string(colour.green) + ";" +
                                       std::to_string(colour.blue) + ";"
                                 : "\x1b[48;5;67;";
    CHECK(text.find(first) != std::string::npos);
    CHECK(text.find("\x1b[0m|\n") != std::string::npos);
    std::size_t at = text.find("\x1b[48", text.find("rank 0"));
    at = text.find("\x1b[48", text.find("---", at));
    CHECK(text.compare(at, first.size(), first) != 0);
  }
  style.colour = false;
  CHECK(map_to_text("w", saved, nullptr, style, &palette) == plain);
}

TEST_CASE("a tiling of a thousand rows is folded, not cut off") {
  TiledTensor saved{{1000, 1}, {}};
  for (std::int64_t i = 0; i < 1000; ++i)
    saved.tiles.push_back({{{i, 0}, {1, 1}}, static_cast<std::uint32_t>(i)});
  std::string text = map_to_text("w", saved, nullptr, {false, true, 80});
  CHECK(std::count(text.begin(), text.end(), '\n') < 30);
  CHECK(text.find("999") != std::string::npos);
  CHECK(text.find("more") != std::string::npos);
}

TEST_CASE("tiles with impossible offsets are drawn where they can be, or not at all") {
  std::int64_t huge = std::int64_t{1} << 62;
  TiledTensor saved{{4, 4}, {{{{huge, huge}, {huge, huge}}, 0}, {{{-5, -5}, {2, 2}}, 1}}};
  CHECK_FALSE(map_to_text("w", saved, nullptr, {false, true, 80}).empty());
  CHECK_FALSE(tensor_map_to_json("w", saved, nullptr).empty());
}

TEST_CASE("the page tells ranks and files with those that are not there first") {
  auto checkpoint = four_tiles();
  CheckReport check;
  std::string html = report_html({*checkpoint, check, nullptr, nullptr, ""});
  CHECK(html.find("4 ranks wrote tiles: 24 B") != std::string::npos);
  CHECK(html.find("__3_0.distcp") != std::string::npos);
  CHECK(html.find("is not there") != std::string::npos);
  CHECK(html.find("<h2>Statistics</h2>") == std::string::npos);
  CHECK(html.find("certificate.json") == std::string::npos);
  std::string markdown = report_markdown({*checkpoint, check, nullptr, nullptr, ""});
  CHECK(markdown.find("4 ranks wrote tiles: 24 B") != std::string::npos);
  CHECK(markdown.find("| `__3_0.distcp` | is not there | 3 | 1 |") != std::string::npos);
  CHECK(markdown.find("## Statistics") == std::string::npos);
  CHECK(markdown.find("certificate.json") == std::string::npos);
}

TEST_CASE("the page tells the meshes and placements of the spec with their tensors") {
  auto checkpoint = four_tiles();
  CheckReport check;
  auto spec = parse_spec(
      R"json({"a": {"shape": [8, 6], "mesh": {"dp": 2, "tp": 2}, "placements": ["Shard(0)", "Shard(1)"]},
          "b": {"shape": [8, 6], "mesh": {"dp": 2, "tp": 2}, "placements": ["Shard(0)", "Shard(1)"]}})json",
      "spec.json");
  REQUIRE(spec.has_value());
  std::string html = report_html({*checkpoint, check, nullptr, &*spec, ""});
  CHECK(html.find("<code>dp 2 x tp 2</code></td><td><code>Shard(0), Shard(1)</code></td>"
                  "<td class=\"n\">2</td>") != std::string::npos);
  CHECK(report_markdown({*checkpoint, check, nullptr, &*spec, ""})
            .find("| `dp 2 x tp 2` | `Shard(0), Shard(1)` | 2 |") != std::string::npos);
}

TEST_CASE("the page shows numbers with their histogram and says which are not the tensor's") {
  auto checkpoint = four_tiles();
  CheckReport check;
  TensorStatistics sick;
  sick.fqn = kName;
  sick.dtype = Dtype::kFloat32;
  sick.missing = 3;
  sick.statistics.kind = NumberKind::kFloat;
  sick.statistics.elements = 5;
  sick.statistics.nan = 2;
  sick.statistics.histogram = {{1, 0, 2}, {-1, 3, 1}};
  TensorStatistics well = sick;
  well.fqn = "well";
  well.missing = 0;
  well.statistics.nan = 0;
  const std::vector<TensorStatistics> numbers{well, sick};
  ReportInput input{*checkpoint, check, nullptr, nullptr, ""};
  input.statistics = numbers;
  std::string html = report_html(input);
  std::size_t at = html.find("<h2>Statistics</h2>");
  REQUIRE(at != std::string::npos);
  html = html.substr(at, html.find("<h2>", at + 4) - at);
  CHECK(html.find("3 elements in no tile") != std::string::npos);
  CHECK(html.find("aria-label=\"2^0 to 2^3\"") != std::string::npos);
  CHECK(html.find("&lt;script&gt;") < html.find("<code>well</code>"));
  CHECK(html.find("<script>") == std::string::npos);
  std::string markdown = report_markdown(input);
  markdown = markdown.substr(markdown.find("## Statistics"));
  CHECK(markdown.find("3 elements in no tile") < markdown.find("| `well` | 5 | 0 |"));
  CHECK(markdown.find("| `well` | 5 | 0 |") != std::string::npos);
}

TEST_CASE("the page says what a certificate says and whether that was changed afterwards") {
  auto checkpoint = four_tiles();
  CheckReport check;
  Certificate certificate;
  certificate.lossless = false;
  certificate.source = "runs/<b>";
  certificate.version = "1.0";
  certificate.steps = {"cast all to bfloat16"};
  TensorCertificate lost;
  lost.fqn = "w";
  lost.lost = 7;
  certificate.tensors = {lost};
  ReportInput input{*checkpoint, check, nullptr, nullptr, ""};
  input.certificate = &certificate;
  certificate.seal = Certificate::Seal::kIntact;
  std::string html = report_html(input);
  CHECK(html.find("7 elements of 1 tensor lost") != std::string::npos);
  CHECK(html.find("cast all to bfloat16") != std::string::npos);
  CHECK(html.find("runs/&lt;b&gt;") != std::string::npos);
  CHECK(html.find("lost data</span>") != std::string::npos);
  std::string markdown = report_markdown(input);
  CHECK(markdown.find("**lost data**") != std::string::npos);
  CHECK(markdown.find("made of `runs/<b>` by Shardwright 1.0") != std::string::npos);
  CHECK(markdown.find("- `step` cast all to bfloat16") != std::string::npos);
  CHECK(markdown.find("- `lost` 7 elements of w") != std::string::npos);
  certificate.seal = Certificate::Seal::kBroken;
  CHECK(report_html(input).find("changed after it was written") != std::string::npos);
}

TEST_CASE("what is pasted fits into an issue and says what it has left out") {
  CheckpointBuilder builder;
  builder.set_format(kDcpFormat);
  CheckReport check = one_finding();
  for (int i = 0; i < 400; ++i) {
    std::string name(350, 'w');
    name += std::to_string(i);
    builder.add_tensor(name, Dtype::kBfloat16, Extents{4});
    builder.add_chunk(Extents{0}, Extents{4}, {builder.file(name + ".distcp"), 0, 64});
    check.findings[0].subjects.push_back(name);
  }
  auto checkpoint = builder.finish();
  for (int i = 0; i < 45; ++i) check.findings.push_back(check.findings[0]);
  std::string markdown = report_markdown({*checkpoint, check, nullptr, nullptr, "check it"});
  CHECK(markdown.size() < 65'536);
  CHECK(markdown.find("more findings are not listed") != std::string::npos);
  CHECK(markdown.find("```\ncheck it\n```") != std::string::npos);
  CHECK(markdown.find("<details><summary>396 more</summary>") != std::string::npos);
  check.findings.clear();
  markdown = report_markdown({*checkpoint, check, nullptr, nullptr, "check it"});
  CHECK(markdown.find("<details><summary>400 files, 400 of them not as they should be</summary>") !=
        std::string::npos);
  CHECK(markdown.find("375 more are not listed") != std::string::npos);
}

TEST_CASE("nobody is called by a name that is pasted") {
  auto checkpoint = four_tiles();
  CheckReport check = one_finding();
  check.findings[0].cause = "w.@somebody.#1 is not there";
  std::string markdown = report_markdown({*checkpoint, check, nullptr, nullptr, ""});
  CHECK(markdown.find("w.@<!-- -->somebody.\\#1 is not there") != std::string::npos);
}
