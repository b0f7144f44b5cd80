// Indexes that name missing files, next to files with every tensor; and bytes of no tensor.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "core/formats/library_names.h"
#include "core/formats/open.h"
#include "core/make_zip.h"
#include "core/model/index_only_tensors.h"
#include "core/repair/against_source.h"
#include "core/repair/plan/plan.h"
#include "core/repair/run/apply.h"
#include "core/rules/check.h"
#include "core/temporary_folder.h"

using namespace shw;

namespace {

using Tensors = std::vector<std::pair<std::string, char>>;

std::string file_of(const Tensors& tensors) {
  std::string header = "{", data;
  for (const auto& [fqn, fill] : tensors) {
    header += (data.empty() ? "\"" : ",\"") + fqn + R"(":{"dtype":"F32","shape":[2,3],)" +
              R"("data_offsets":[)" + std::to_string(data.size()) + "," +
              std::to_string(data.size() + 24) + "]}";
    data += std::string(24, fill);
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  return test::little(header.size(), 8) + header + data;
}

std::string index_with(const std::string& a, const std::string& b) {
  return R"({"metadata":{"total_size":48},"weight_map":{"a":")" + a + R"(","b":")" + b + R"("}})";
}

struct Opened {
  std::shared_ptr<const Checkpoint> checkpoint;
  CheckReport report;
};
Opened opened(const std::string& folder) {
  auto checkpoint = open_checkpoint(folder);
  if (!checkpoint) FAIL(checkpoint.error().message);
  auto report = check(**checkpoint, {});
  REQUIRE(report.has_value());
  return {*checkpoint, std::move(*report)};
}

const Finding* find_rule_in(const CheckReport& report, std::string_view rule) {
  for (const Finding& finding : report.findings) {
    if (finding.rule == rule) return &finding;
  }
  return nullptr;
}

// Repairs it and returns the result.
Opened repaired(const Opened& source, const std::string& out) {
  auto plan = make_plan(*source.checkpoint, source.report, {});
  REQUIRE(plan.has_value());
  CHECK(plan->lossless);
  CHECK(plan->undecided.empty());
  auto made = apply_plan(*source.checkpoint, *plan, {out});
  if (!made) FAIL(made.error().message);
  CHECK(made->lossless);
  auto verified = verified_against(out, *source.checkpoint);
  REQUIRE(verified.has_value());
  CHECK(verified->outcome == VerifyReport::Outcome::kProved);
  return opened(out);
}

const std::string kFirst = "unet-00001-of-00002.safetensors";
const std::string kSecond = "unet-00002-of-00002.safetensors";
const std::string kIndexOfUnet = "unet.safetensors.index.json";

}  // namespace

TEST_CASE(
    "stale index: one file that holds every tensor is read, and repair leaves the index out") {
  TemporaryFolder folder, made;
  put(folder / "unet.safetensors", file_of({{"a", '\1'}, {"b", '\2'}}));
  put(folder / kIndexOfUnet, index_with(kFirst, kSecond));
  const Opened broken = opened(folder.path());
  CHECK(broken.checkpoint->tensor_count() == 2);
  REQUIRE(broken.report.findings.size() == 1);
  const Finding& finding = broken.report.findings.front();
  CHECK(finding.rule == "index-misplaced");
  CHECK(finding.severity == Severity::kError);
  CHECK(finding.cause.find(kIndexOfUnet) != std::string::npos);
  CHECK(finding.cause.find("in unet.safetensors") != std::string::npos);
  REQUIRE(finding.remedy.has_value());
  CHECK(finding.remedy->text.find("or rewrite it if other weights") != std::string::npos);
  const Opened mended = repaired(broken, made / "out");
  CHECK(mended.report.findings.empty());
  CHECK_FALSE(std::filesystem::exists(made / "out/unet.safetensors.index.json"));
  CHECK(contents(made / "out/unet.safetensors") == contents(folder / "unet.safetensors"));
}

TEST_CASE("stale index: transformers loads the one file, and the index is a warning") {
  TemporaryFolder folder;
  put(folder / "model.safetensors", file_of({{"a", '\1'}, {"b", '\2'}}));
  put(folder / "model.safetensors.index.json", index_with("m-1.safetensors", "m-2.safetensors"));
  const Opened broken = opened(folder.path());
  REQUIRE(broken.report.findings.size() == 1);
  CHECK(broken.report.findings.front().rule == "index-misplaced");
  CHECK(broken.report.findings.front().severity == Severity::kWarning);
}

TEST_CASE("stale index: renamed shards are read and the index is rewritten") {
  for (const auto& [first, second] :
       {std::pair<std::string, std::string>{"UNET-00001-of-00002.safetensors",
                                            "UNET-00002-of-00002.safetensors"},
        {"unet-00001-of-00003.safetensors", "unet-00003-of-00003.safetensors"},
        {kFirst, "unet-b.safetensors"}}) {
    CAPTURE(second);
    TemporaryFolder folder, made;
    put(folder / first, file_of({{"a", '\1'}}));
    put(folder / second, file_of({{"b", '\2'}}));
    put(folder / kIndexOfUnet, index_with(kFirst, kSecond));
    const Opened broken = opened(folder.path());
    CHECK(broken.checkpoint->tensor_count() == 2);
    CHECK(index_only_tensors(*broken.checkpoint).empty());
    CHECK(find_rule_in(broken.report, "missing-file") == nullptr);
    REQUIRE(find_rule_in(broken.report, "index-misplaced") != nullptr);
    const Opened mended = repaired(broken, made / "out");
    CHECK(mended.report.verdict == Verdict::kClean);
    CHECK(contents(made / "out/unet.safetensors.index.json").find(second) != std::string::npos);
  }
}

TEST_CASE("stale index: of two saves in a folder the one that holds every tensor is read") {
  TemporaryFolder folder, made;
  put(folder / kFirst, file_of({{"a", '\7'}}));  // of the save that the index belongs to
  put(folder / "unet-00001-of-00001.safetensors", file_of({{"a", '\1'}, {"b", '\2'}}));
  put(folder / kIndexOfUnet, index_with(kFirst, kSecond));
  const Opened broken = opened(folder.path());
  REQUIRE(find_rule_in(broken.report, "index-misplaced") != nullptr);
  CHECK(broken.checkpoint->tensor_count() == 2);
  const Opened mended = repaired(broken, made / "out");
  CHECK(find_rule_in(mended.report, "index-misplaced") == nullptr);
  CHECK(mended.checkpoint->tensor_count() == 2);
}

TEST_CASE("stale index: where no file holds a tensor its file is missing as before") {
  TemporaryFolder folder;
  put(folder / kFirst, file_of({{"a", '\1'}}));
  put(folder / "other.safetensors", file_of({{"c", '\3'}}));
  put(folder / kIndexOfUnet, index_with(kFirst, kSecond));
  const Opened broken = opened(folder.path());
  CHECK(broken.checkpoint->tensor_count() == 1);
  REQUIRE(find_rule_in(broken.report, "missing-file") != nullptr);
  CHECK(find_rule_in(broken.report, "index-misplaced") == nullptr);
}

TEST_CASE("unowned bytes: bytes after the last tensor are said, and repair drops them") {
  TemporaryFolder folder, made;
  const std::string whole = file_of({{"a", '\1'}, {"b", '\2'}});
  put(folder / "model.safetensors", whole + std::string(4096, '\0'));
  const Opened broken = opened(folder.path());
  REQUIRE(broken.report.findings.size() == 1);
  const Finding& finding = broken.report.findings.front();
  CHECK(finding.rule == "unowned-bytes");
  CHECK(finding.cause.find("4,096 bytes") != std::string::npos);
  const Opened mended = repaired(broken, made / "out");
  CHECK(mended.report.findings.empty());
  CHECK(std::filesystem::file_size(made / "out/model.safetensors") <= whole.size());
}

TEST_CASE("unowned bytes: bytes before a tensor are dropped too, next to other faults nothing is") {
  TemporaryFolder folder, made;
  auto put_with = [&](const std::string& offsets, std::size_t data) {
    std::string header = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                         R"("b":{"dtype":"F32","shape":[2],"data_offsets":)" +
                         offsets + "}}";
    header.resize((header.size() + 7) / 8 * 8, ' ');
    put(folder / "model.safetensors",
        test::little(header.size(), 8) + header + std::string(data, '\5'));
  };
  put_with("[12,20]", 20);
  const Opened broken = opened(folder.path());
  REQUIRE(broken.report.findings.size() == 1);
  CHECK(broken.report.findings.front().rule == "unowned-bytes");
  CHECK(repaired(broken, made / "out").report.findings.empty());
  put_with("[12,24]", 30);  // too long for its shape
  const Opened damaged = opened(folder.path());
  CHECK(find_rule_in(damaged.report, "unowned-bytes") == nullptr);
  CHECK(find_rule_in(damaged.report, "bad-record") != nullptr);
}

TEST_CASE("conversion: weights of diffusers keep the name that diffusers looks for") {
  TemporaryFolder folder, made;
  put(folder / "diffusion_pytorch_model.safetensors", file_of({{"a", '\1'}, {"b", '\2'}}));
  auto checkpoint = open_checkpoint(folder.path());
  REQUIRE(checkpoint.has_value());
  CHECK(weight_file_names(&**checkpoint).stem == "diffusion_pytorch_model");
  put(made / "model.safetensors", file_of({{"a", '\1'}}));
  checkpoint = open_checkpoint(made.path());
  REQUIRE(checkpoint.has_value());
  CHECK(weight_file_names(&**checkpoint).stem == "model");
  CHECK(weight_file_names(nullptr).stem == "model");
}

TEST_CASE("index: a file of another save is named with what it holds and what it lacks") {
  TemporaryFolder folder;
  const auto put_index = [&](const std::string& entries) {
    put(folder / "model.safetensors.index.json",
        R"({"metadata":{"total_size":96},"weight_map":{)" + entries + "}}");
  };
  const auto lost_in = [](const Opened& one) {
    for (const Finding& finding : one.report.findings) {
      if (!finding.subjects.empty() && finding.subjects.front() == "d") return finding.cause;
    }
    return std::string("none");
  };
  put(folder / "m-1.safetensors", file_of({{"a", '\1'}, {"b", '\2'}}));
  put_index(R"("a":"m-1.safetensors","b":"m-1.safetensors","c":"m-2.safetensors",)"
            R"("d":"m-2.safetensors","e":"m-2.safetensors")");
  put(folder / "m-2.safetensors", file_of({{"a", '\4'}, {"b", '\5'}, {"c", '\6'}}));
  CHECK(
      lost_in(opened(folder.path())).find("m-2.safetensors most likely belongs to another save") !=
      std::string::npos);
  // One tensor may have been moved by hand.
  put_index(R"("a":"m-1.safetensors","b":"m-1.safetensors","c":"m-2.safetensors",)"
            R"("d":"m-2.safetensors")");
  put(folder / "m-2.safetensors", file_of({{"b", '\5'}, {"c", '\6'}}));
  CHECK(lost_in(opened(folder.path())).find("another save") == std::string::npos);
  // The other file under its name is not another save.
  put_index(R"("a":"m-1.safetensors","b":"m-1.safetensors","d":"m-2.safetensors")");
  put(folder / "m-2.safetensors", file_of({{"a", '\1'}, {"b", '\2'}}));
  CHECK(lost_in(opened(folder.path()))
            .find("m-2.safetensors holds tensors of the same names as m-1.safetensors") !=
        std::string::npos);
  put_index(R"("a":"m-1.safetensors","b":"m-1.safetensors","c":"m-2.safetensors",)"
            R"("d":"m-2.safetensors")");
  // A file that only lacks a tensor may be of this save.
  put(folder / "m-2.safetensors", file_of({{"c", '\6'}}));
  const std::string only_lost = lost_in(opened(folder.path()));
  CHECK(only_lost.find("The index places 1 tensor in files") != std::string::npos);
  CHECK(only_lost.find("another save") == std::string::npos);
  // Nor are tensors under new names another save.
  put(folder / "m-2.safetensors", file_of({{"c", '\6'}, {"renamed", '\7'}}));
  CHECK(lost_in(opened(folder.path())).find("another save") == std::string::npos);
  // A wrong entry besides the lost tensor is not two saves.
  put(folder / "m-1.safetensors", file_of({{"a", '\1'}}));
  put(folder / "m-2.safetensors", file_of({{"b", '\2'}, {"c", '\6'}}));
  CHECK(lost_in(opened(folder.path())).find("another save") == std::string::npos);
}

TEST_CASE("index: entries of scales next to weights without scales are named as such") {
  TemporaryFolder folder;
  put(folder / "m-1.safetensors", file_of({{"a.weight", '\1'}, {"b.weight", '\2'}}));
  const auto cause_with = [&](const std::string& lost) {
    put(folder / "model.safetensors.index.json",
        R"({"metadata":{"total_size":48},"weight_map":{"a.weight":"m-1.safetensors",)"
        R"("b.weight":"m-1.safetensors",")" +
            lost + R"(":"m-1.safetensors"}})");
    const Opened one = opened(folder.path());
    const Finding* finding = find_rule_in(one.report, "bad-record");
    REQUIRE(finding != nullptr);
    CHECK(finding->severity == Severity::kError);
    return finding->cause;
  };
  CHECK(cause_with("a.weight_scale_inv").find("scales of quantised weights") != std::string::npos);
  for (const char* other : {"a.bias", "c.weight_scale_inv", "a.weight_scale_invalid"})
    CHECK(cause_with(other).find("scales") == std::string::npos);
}

TEST_CASE("missing file: an unfinished download of it is named") {
  TemporaryFolder folder;
  put(folder / "model.safetensors.index.json", index_with("m-1.safetensors", "m-2.safetensors"));
  put(folder / "m-1.safetensors", file_of({{"a", '\1'}}));
  const auto is_named = [&] {
    const Opened one = opened(folder.path());
    const Finding* finding = find_rule_in(one.report, "missing-file");
    REQUIRE(finding != nullptr);
    return finding->cause.find("m-2.safetensors.incomplete is there") != std::string::npos;
  };
  CHECK_FALSE(is_named());
  put(folder / "m-2.safetensors.old", "x");
  put(folder / "m-1.safetensors.incomplete", "x");
  CHECK_FALSE(is_named());
  put(folder / "m-2.safetensors.incomplete", "x");
  CHECK(is_named());
}
