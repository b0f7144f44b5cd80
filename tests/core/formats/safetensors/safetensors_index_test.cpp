// The index of safetensors files compared with the contents of the files.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "core/formats/open.h"
#include "core/make_zip.h"
#include "core/model/index_only_tensors.h"
#include "core/repair/against_source.h"
#include "core/repair/plan/plan.h"
#include "core/repair/run/apply.h"
#include "core/report/report.h"
#include "core/report/text.h"
#include "core/rules/check.h"
#include "core/temporary_folder.h"

using namespace shw;

namespace {

std::string file_with(const std::string& fqn, char fill) {
  std::string header = "{\"" + fqn + R"(":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  return test::little(header.size(), 8) + header + std::string(24, fill);
}

std::string index_of(const std::string& entries) {
  return R"({"metadata":{"total_size":72},"weight_map":{)" + entries + "}}";
}

const std::string kRight = R"("a":"m-1.safetensors","b":"m-2.safetensors","c":"m-3.safetensors")";

// Three files with one tensor each.
void write_three(const TemporaryFolder& folder, const std::string& entries,
                 const std::string& index = "model.safetensors.index.json") {
  put(folder / "m-1.safetensors", file_with("a", '\1'));
  put(folder / "m-2.safetensors", file_with("b", '\2'));
  put(folder / "m-3.safetensors", file_with("c", '\3'));
  put(folder / index, index_of(entries));
}

std::shared_ptr<const Checkpoint> open_at(const std::string& folder) {
  auto checkpoint = open_checkpoint(folder);
  if (!checkpoint) FAIL(checkpoint.error().message);
  return *checkpoint;
}

CheckReport report_of(const Checkpoint& checkpoint) {
  auto report = check(checkpoint, {});
  REQUIRE(report.has_value());
  return std::move(*report);
}

const Finding* find(const CheckReport& report, std::string_view rule) {
  for (const Finding& finding : report.findings) {
    if (finding.rule == rule) return &finding;
  }
  return nullptr;
}

bool has(const std::vector<std::string>& all, const std::string& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

}  // namespace

TEST_CASE("tensors of a file that is gone are named by the index everywhere") {
  for (const char* index : {"model.safetensors.index.json", "unet.safetensors.index.json"}) {
    CAPTURE(index);
    TemporaryFolder folder;
    write_three(folder, kRight, index);
    std::filesystem::remove(folder / "m-2.safetensors");
    auto checkpoint = open_at(folder.path());
    REQUIRE(index_only_tensors(*checkpoint).size() == 1);
    CHECK(index_only_tensors(*checkpoint)[0].fqn == "b");
    CheckReport report = report_of(*checkpoint);
    const Finding* finding = find(report, "missing-file");
    REQUIRE(finding != nullptr);
    CHECK(has(finding->subjects, "m-2.safetensors"));
    CHECK(has(finding->subjects, "b"));
    CHECK(finding->cause.find("0 tiles") == std::string::npos);
    CHECK(finding->cause.find("(b)") != std::string::npos);
    std::string text = check_to_text(*checkpoint, report, {});
    CHECK(text.find("coverage complete") == std::string::npos);
    std::vector<std::uint32_t> all(checkpoint->tensor_count());
    std::iota(all.begin(), all.end(), 0u);
    CHECK(list_to_json(*checkpoint, all, {}).find("\"named_only\"") != std::string::npos);
    CHECK(info_to_json(*checkpoint).find("\"named_only\"") != std::string::npos);
  }
}

TEST_CASE("a file whose beginning was never written takes along what the index places there") {
  TemporaryFolder folder;
  write_three(folder, kRight);
  std::string zeros = file_with("b", '\2');
  std::fill_n(zeros.begin(), 64, '\0');
  put(folder / "m-2.safetensors", zeros);
  auto checkpoint = open_at(folder.path());
  CheckReport report = report_of(*checkpoint);
  REQUIRE(report.findings.size() == 1);
  const Finding& finding = report.findings.front();
  CHECK(finding.rule == "bad-record");
  CHECK(finding.subjects == std::vector<std::string>{"m-2.safetensors", "b"});
  CHECK(finding.cause.find("begins with zeros") != std::string::npos);
  CHECK(finding.cause.find("1 tensor that the index lists in it (b)") != std::string::npos);
  std::string text = check_to_text(*checkpoint, report, {});
  CHECK(text.find("files cannot be read") != std::string::npos);
  CHECK(text.find("coverage complete") == std::string::npos);
  CHECK(text.find("1 file, 1 tensor") != std::string::npos);
}

TEST_CASE("a file that is cut off is one finding, with the tensors behind the cut") {
  TemporaryFolder folder;
  write_three(folder, kRight);
  std::string cut = file_with("b", '\2');
  put(folder / "m-2.safetensors", cut.substr(0, cut.size() - 10));
  for (Depth depth : {Depth::kMetadata, Depth::kHeaders, Depth::kData}) {
    CheckOptions options;
    options.depth = depth;
    auto report = check(*open_at(folder.path()), options);
    REQUIRE(report.has_value());
    REQUIRE(report->findings.size() == 1);
    CHECK(report->findings.front().rule == "short-file");
    CHECK(report->findings.front().cause.find("1 item that the metadata lists there (b)") !=
          std::string::npos);
  }
}

// json.dump writes NaN for an invalid loss, and json.load accepts it.
TEST_CASE("an index with numbers that only Python writes is read, and keeps them when it changes") {
  TemporaryFolder folder;
  write_three(folder, kRight);
  auto index_with = [](const std::string& b, const std::string& c) {
    return R"({"metadata":{"total_size":72,"NaN":"\"NaN","loss":NaN,"x":[Infinity,-Infinity]},)"
           R"("weight_map":{"a":"m-1.safetensors","b":")" +
           b + R"(","c":")" + c + R"("}})";
  };
  put(folder / "model.safetensors.index.json", index_with("m-2.safetensors", "m-3.safetensors"));
  CHECK(report_of(*open_at(folder.path())).verdict == Verdict::kClean);

  put(folder / "model.safetensors.index.json", index_with("m-3.safetensors", "m-2.safetensors"));
  auto checkpoint = open_at(folder.path());
  CheckReport report = report_of(*checkpoint);
  CHECK(find(report, "index-misplaced") != nullptr);
  auto plan = make_plan(*checkpoint, report, {});
  REQUIRE(plan.has_value());
  TemporaryFolder made;
  auto repaired = apply_plan(*checkpoint, *plan, {made / "out"});
  if (!repaired) FAIL(repaired.error().message);
  const std::string text = contents(made / "out/model.safetensors.index.json");
  CHECK(text.find("\"loss\": NaN") != std::string::npos);
  CHECK(text.find("-Infinity") != std::string::npos);
  CHECK(text.find(R"("NaN": "\"NaN")") != std::string::npos);
  CHECK(text.find("u0000") == std::string::npos);
  CHECK(report_of(*open_at(made / "out")).verdict == Verdict::kClean);

  // NaN instead of a file name is invalid, like any other value that is not a name.
  put(folder / "model.safetensors.index.json",
      index_of(R"("a":"m-1.safetensors","b":NaN,"c":"m-3.safetensors")"));
  const CheckReport unnamed = report_of(*open_at(folder.path()));
  CHECK(find(unnamed, "bad-record") != nullptr);
}

TEST_CASE("an entry of the index that names another file than the tensor's is said and mended") {
  TemporaryFolder folder;
  write_three(folder, R"("a":"m-1.safetensors","b":"m-1.safetensors","c":"m-3.safetensors",)"
                      R"("unused":"m-2.safetensors")");
  auto checkpoint = open_at(folder.path());
  CheckReport report = report_of(*checkpoint);
  const Finding* finding = find(report, "index-misplaced");
  REQUIRE(finding != nullptr);
  CHECK(finding->subjects == std::vector<std::string>{"b"});
  CHECK(finding->cause.find("is in m-1.safetensors, but it is in m-2.safetensors") !=
        std::string::npos);
  REQUIRE(finding->remedy.has_value());
  CHECK(finding->remedy->lossless);
  const Finding* nowhere = find(report, "bad-record");
  REQUIRE(nowhere != nullptr);
  CHECK(nowhere->subjects == std::vector<std::string>{"unused"});

  auto plan = make_plan(*checkpoint, report, {});
  REQUIRE(plan.has_value());
  CHECK(plan->lossless);
  TemporaryFolder made;
  auto repaired = apply_plan(*checkpoint, *plan, {made / "out"});
  if (!repaired) FAIL(repaired.error().message);
  auto after = open_at(made / "out");
  CHECK(find(report_of(*after), "index-misplaced") == nullptr);
  CHECK(contents(made / "out/m-2.safetensors") == contents(folder / "m-2.safetensors"));
  CHECK(contents(made / "out/model.safetensors.index.json").find("total_size") !=
        std::string::npos);
  auto verified = verified_against(made / "out", *checkpoint);
  REQUIRE(verified.has_value());
  CHECK(verified->outcome == VerifyReport::Outcome::kProved);
}

TEST_CASE("a right index of any stem raises nothing") {
  TemporaryFolder folder;
  write_three(folder, kRight, "diffusion_pytorch_model.safetensors.index.json");
  auto checkpoint = open_at(folder.path());
  CHECK(index_only_tensors(*checkpoint).empty());
  CHECK(report_of(*checkpoint).verdict == Verdict::kClean);
}

TEST_CASE("an index that is silent about a tensor, or names no file for it, is reported") {
  TemporaryFolder folder;
  write_three(folder, R"("a":"m-1.safetensors","c":"m-3.safetensors")");
  CHECK(report_of(*open_at(folder.path())).verdict == Verdict::kClean);  // b's file is not named
  put(
      folder / "m-3.safetensors", test::little(128, 8) + []() {
        std::string header = R"({"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                             R"("c":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})";
        header.resize(128, ' ');
        return header;
      }() + std::string(8, '\3'));
  auto checkpoint = open_at(folder.path());
  CheckReport report = report_of(*checkpoint);
  const Finding* silent = find(report, "bad-record");
  REQUIRE(silent != nullptr);
  CHECK(silent->severity == Severity::kWarning);
  CHECK(silent->subjects == std::vector<std::string>{"b", "model.safetensors.index.json"});
  for (const char* nothing :
       {"7", "null", "[\"m-1.safetensors\"]", "{\"x\":\"m-1.safetensors\"}"}) {
    CAPTURE(nothing);
    TemporaryFolder other;
    write_three(other, kRight + R"(,"d":)" + nothing);
    CheckReport told = report_of(*open_at(other.path()));
    const Finding* finding = find(told, "bad-record");
    REQUIRE(finding != nullptr);
    CHECK(finding->severity == Severity::kError);
    CHECK(finding->subjects.front() == "d");
  }
}

TEST_CASE("an index that is a folder or leads nowhere is reported, and the files are read") {
  for (bool is_folder : {true, false}) {
    CAPTURE(is_folder);
    TemporaryFolder folder;
    write_three(folder, kRight);
    const std::string index = folder / "model.safetensors.index.json";
    std::filesystem::remove(index);
    if (is_folder)
      std::filesystem::create_directory(index);
    else
      std::filesystem::create_symlink("nowhere", index);
    auto checkpoint = open_at(folder.path());
    CHECK(checkpoint->tensor_count() == 3);
    CheckReport report = report_of(*checkpoint);
    CHECK(report.verdict == Verdict::kFindings);
    REQUIRE(find(report, "bad-record") != nullptr);
    CHECK(find(report, "bad-record")->cause.find("index") != std::string::npos);
  }
}

TEST_CASE("without an index the numbers in the names say which files are gone") {
  auto missing = [](const std::vector<std::string>& names) {
    TemporaryFolder folder;
    char fqn = 'a';
    for (const std::string& name : names) put(folder / name, file_with({fqn++}, '\1'));
    CheckReport report = report_of(*open_at(folder.path()));
    const Finding* finding = find(report, "missing-file");
    CHECK((report.verdict == Verdict::kClean) == (finding == nullptr));
    return finding == nullptr ? std::vector<std::string>() : finding->subjects;
  };
  using Names = std::vector<std::string>;
  CHECK(missing({"model-00001-of-00003.safetensors", "model-00003-of-00003.safetensors"}) ==
        Names{"model-00002-of-00003.safetensors"});
  CHECK(missing({"model-00001-of-00002.safetensors"}) == Names{"model-00002-of-00002.safetensors"});
  CHECK(missing({"a-1-of-2.safetensors", "b-2-of-2.safetensors"}) ==
        Names{"a-2-of-2.safetensors", "b-1-of-2.safetensors"});
  CHECK(missing({"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"}).empty());
  for (const char* name : {"model-00003-of-00002.safetensors", "x-of-y.safetensors",
                           "layers-1-of-.safetensors", "-of-3.safetensors", "m-0-of-3.safetensors",
                           "m-1-of-99999999999.safetensors", "m-1-of-4097.safetensors"})
    CHECK(missing({name}).empty());
  // A file that the user names is opened alone.
  TemporaryFolder folder;
  put(folder / "model-00001-of-00003.safetensors", file_with("a", '\1'));
  auto alone = open_at(folder / "model-00001-of-00003.safetensors");
  CHECK(report_of(*alone).verdict == Verdict::kClean);
}

TEST_CASE("parts of a model of transformers without their index are a warning") {
  TemporaryFolder folder;
  put(folder / "model-00001-of-00002.safetensors", file_with("a", '\1'));
  put(folder / "model-00002-of-00002.safetensors", file_with("b", '\2'));
  auto severity = [&] {
    const auto opened = open_at(folder.path());
    REQUIRE(opened->opening_findings().size() == 1);
    return opened->opening_findings().front().severity;
  };
  CHECK(severity() == Severity::kInfo);
  put(folder / "config.json", R"({"model_type": "of_nobody"})");
  CHECK(severity() == Severity::kWarning);
}

TEST_CASE(
    "files that each hold the same tensor are no one checkpoint, and none of them is broken") {
  auto open_two = [](const char* first, const char* second) {
    TemporaryFolder folder;
    put(folder / first, file_with("a", '\1'));
    put(folder / second, file_with("a", '\2'));
    CHECK(report_of(*open_at(folder / first)).verdict == Verdict::kClean);
    return open_checkpoint(folder.path());
  };
  auto forms = open_two("unet.safetensors", "unet.fp16.safetensors");
  REQUIRE_FALSE(forms.has_value());
  CHECK(forms.error().kind == ErrorKind::kUnsupported);
  CHECK(forms.error().message.find("several checkpoints") != std::string::npos);
  CHECK(forms.error().message.find("both hold a") != std::string::npos);
  CHECK(forms.error().advice.find("unet.fp16.safetensors") != std::string::npos);
  CHECK_FALSE(open_two("m-1-of-2.safetensors", "m.fp16-1-of-2.safetensors").has_value());
  // Parts of one save belong together, and what they lack is damage.
  CHECK(open_two("m-1-of-2.safetensors", "m-2-of-2.safetensors").has_value());
}

TEST_CASE("one model under two sets of names is two checkpoints, and an index says which counts") {
  TemporaryFolder folder;
  put(folder / "model.safetensors", file_with("model.embed_tokens.weight", '\1'));
  put(folder / "consolidated.safetensors", file_with("tok_embeddings.weight", '\2'));
  auto both = open_checkpoint(folder.path());
  REQUIRE_FALSE(both.has_value());
  CHECK(both.error().kind == ErrorKind::kUnsupported);
  CHECK(both.error().message.find("consolidated.safetensors or model.safetensors") !=
        std::string::npos);
  CHECK(both.error().advice.find("Give the path of one of them") != std::string::npos);
  CHECK(report_of(*open_at(folder / "model.safetensors")).verdict == Verdict::kClean);
  // An unreadable file still counts as a second model.
  put(folder / "consolidated.safetensors", "cut");
  CHECK_FALSE(open_checkpoint(folder.path()).has_value());
  TemporaryFolder parts;
  put(parts / "model-00001-of-00001.safetensors", file_with("model.embed_tokens.weight", '\1'));
  put(parts / "consolidated.safetensors", file_with("tok_embeddings.weight", '\2'));
  CHECK_FALSE(open_checkpoint(parts.path()).has_value());
  put(parts / "model.safetensors.index.json",
      R"({"metadata":{},"weight_map":{"model.embed_tokens.weight":)"
      R"("model-00001-of-00001.safetensors"}})");
  auto told = open_checkpoint(parts.path());
  REQUIRE(told.has_value());
  CHECK((*told)->tensor_count() == 1);
}

TEST_CASE("parts of one rank's file, and files of other tensors, are one checkpoint") {
  TemporaryFolder folder;
  put(folder / "model-rank-0-part-0.safetensors", file_with("a", '\1'));
  put(folder / "model-rank-0-part-1.safetensors", file_with("b", '\2'));
  CheckReport report = report_of(*open_at(folder.path()));
  CHECK(report.verdict == Verdict::kClean);
}

TEST_CASE(
    "a part of the same save that the index leaves out is reported, and another form is not") {
  for (bool is_part : {true, false}) {
    TemporaryFolder folder;
    put(folder / "m-00001-of-00002.safetensors", file_with("a", '\1'));
    put(folder / (is_part ? "m-00002-of-00002.safetensors" : "m.fp16-00002-of-00002.safetensors"),
        file_with("b", '\2'));
    put(folder / "model.safetensors.index.json", index_of(R"("a":"m-00001-of-00002.safetensors")"));
    auto report = report_of(*open_at(folder / ""));
    const bool is_told =
        std::any_of(report.findings.begin(), report.findings.end(), [](const Finding& finding) {
          return finding.rule == "bad-record" && has(finding.subjects, "b");
        });
    CHECK(is_told == is_part);
  }
}

TEST_CASE("the index counts as a loader reads it: the last of two entries, with or without a dot") {
  TemporaryFolder folder;
  write_three(folder, R"("b":"m-1.safetensors","a":"./m-1.safetensors","b":"m-2.safetensors",)"
                      R"("c":"././m-3.safetensors")");
  for (const Finding& finding : report_of(*open_at(folder / "")).findings)
    CHECK(finding.severity == Severity::kInfo);
}

TEST_CASE(
    "a single file next to an index of others is reported, with the one that transformers loads") {
  TemporaryFolder folder;
  write_three(folder, kRight);
  put(folder / "model.safetensors", file_with("a", '\7'));
  auto checkpoint = open_at(folder.path());
  CHECK(checkpoint->tensor_count() == 3);
  CheckReport report = report_of(*checkpoint);
  CHECK(report.verdict == Verdict::kFindings);
  const Finding* finding = find(report, "bad-record");
  REQUIRE(finding != nullptr);
  CHECK(finding->severity == Severity::kWarning);
  CHECK(finding->subjects ==
        std::vector<std::string>{"model.safetensors", "model.safetensors.index.json"});
  CHECK(finding->cause.find("transformers loads that one file") != std::string::npos);
  // This file alone is what both load; diffusers looks for an index first.
  TemporaryFolder same;
  put(same / "model.safetensors", file_with("a", '\7'));
  put(same / "model.safetensors.index.json", index_of(R"("a":"model.safetensors")"));
  CHECK(report_of(*open_at(same.path())).verdict == Verdict::kClean);
  TemporaryFolder other;
  write_three(other, kRight, "unet.safetensors.index.json");
  put(other / "unet.safetensors", file_with("a", '\7'));
  CHECK(report_of(*open_at(other.path())).verdict == Verdict::kClean);
}

TEST_CASE("an index of files that are all gone is reported, whatever else is there") {
  for (bool is_single : {true, false}) {
    TemporaryFolder folder;
    put(folder / (is_single ? "model.safetensors" : "other.safetensors"), file_with("a", '\7'));
    put(folder / "model.safetensors.index.json", index_of(kRight));
    CheckReport report = report_of(*open_at(folder.path()));
    const Finding* finding = find(report, "bad-record");
    REQUIRE(finding != nullptr);
    CHECK((finding->severity == Severity::kWarning) == is_single);
    CHECK(finding->cause.find("m-1.safetensors") != std::string::npos);
  }
}

TEST_CASE("an index with a byte order mark is refused, as Python does") {
  TemporaryFolder folder;
  write_three(folder, kRight);
  put(folder / "model.safetensors.index.json", "\xEF\xBB\xBF" + index_of(kRight));
  CheckReport report = report_of(*open_at(folder.path()));
  const Finding* finding = find(report, "bad-record");
  REQUIRE(finding != nullptr);
  CHECK(finding->severity == Severity::kError);
  CHECK(finding->cause.find("EF BB BF at byte 0") != std::string::npos);
}

TEST_CASE("of two weight maps in an index the last one counts, and it is reported") {
  TemporaryFolder folder;
  write_three(folder, kRight);
  const std::string first = R"("weight_map":{"a":"gone.safetensors","d":"gone.safetensors"},)";
  put(folder / "model.safetensors.index.json", "{" + first + index_of(kRight).substr(1));
  auto checkpoint = open_at(folder.path());
  CHECK(index_only_tensors(*checkpoint).empty());
  CheckReport report = report_of(*checkpoint);
  REQUIRE(find(report, "bad-record") != nullptr);
  CHECK(find(report, "bad-record")->severity == Severity::kWarning);
  CHECK(find(report, "bad-record")->cause.find("2 objects \"weight_map\"") != std::string::npos);
  for (const char* last : {"{}", "7", "null"}) {
    CAPTURE(last);
    std::string index = index_of(kRight);
    index.back() = ',';
    put(folder / "model.safetensors.index.json", index + "\"weight_map\":" + last + "}");
    CheckReport none = report_of(*open_at(folder.path()));
    REQUIRE(find(none, "bad-record") != nullptr);
    CHECK(find(none, "bad-record")->severity == Severity::kError);
  }
}

TEST_CASE("a total size and names of files that promise more than is there are reported") {
  auto opened = [](const std::string& last, const std::string& total) {
    TemporaryFolder folder;
    put(folder / "m-00001-of-00003.safetensors", file_with("a", '\1'));
    put(folder / ("m-0000" + last + "-of-00003.safetensors"), file_with("b", '\2'));
    put(folder / "m-00003-of-00003.safetensors", file_with("c", '\3'));
    put(folder / "model.safetensors.index.json",
        R"({"metadata":{"total_size":)" + total + R"(},"weight_map":{)" +
            R"("a":"m-00001-of-00003.safetensors","b":"m-0000)" + last +
            R"(-of-00003.safetensors","c":"m-00003-of-00003.safetensors"}})");
    auto checkpoint = open_at(folder.path());
    auto found = checkpoint->opening_findings();
    return std::vector<Finding>(found.begin(), found.end());
  };
  CHECK(opened("2", "72").empty());
  CHECK(opened("2", "7.2e1").empty());  // values that do not contradict the others
  for (const char* total : {"71", "96", "0"}) {
    CAPTURE(total);
    auto found = opened("2", total);
    REQUIRE(found.size() == 1);
    CHECK(found[0].severity == Severity::kInfo);
    CHECK(found[0].cause.find("72 bytes") != std::string::npos);
  }
  // "b" is in the first file, so the second belongs to no tensor; a larger total means that more is
  // missing.
  TemporaryFolder folder;
  put(folder / "m-00001-of-00003.safetensors", file_with("a", '\1'));
  put(folder / "m-00003-of-00003.safetensors", file_with("c", '\3'));
  for (const auto& [total, severity] :
       {std::pair{"48", Severity::kInfo}, std::pair{"72", Severity::kWarning}}) {
    CAPTURE(total);
    put(folder / "model.safetensors.index.json",
        std::string(R"({"metadata":{"total_size":)") + total +
            R"(},"weight_map":{"a":"m-00001-of-00003.safetensors",)" +
            R"("c":"m-00003-of-00003.safetensors"}})");
    auto checkpoint = open_at(folder.path());
    REQUIRE_FALSE(checkpoint->opening_findings().empty());
    const Finding& found = checkpoint->opening_findings().back();
    CHECK(checkpoint->opening_findings().size() == 1);
    CHECK(found.severity == severity);
    CHECK(found.cause.find("m-00002-of-00003.safetensors") != std::string::npos);
  }
}
