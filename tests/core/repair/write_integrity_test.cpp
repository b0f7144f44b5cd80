// The list of hashes that Megatron-LM verifies, written next to a result.
#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/facts/storage/integrity.h"
#include "core/repair/make_checkpoint.h"
#include "core/repair/row_plan.h"
#include "core/repair/run/apply.h"
#include "core/rules/check.h"
#include "core/temporary_folder.h"
#include "core/verbs/transforms.h"

using namespace shw;

namespace {

void write_listed_rows(const std::string& path) {
  MadeTensor w{"w", {6, 4}, {}};
  for (std::int64_t i = 0; i < 2; ++i)
    w.chunks.push_back({{{3 * i, 0}, {3, 4}}, {3, 4}, Values(12, 5 + i), i == 0 ? 0U : 1U});
  write_checkpoint(path, {w});
  put(path + "/common.pt", "what was next to");
  put(path + "/integrity.json", R"({"algorithm": "sha256", "files": {}})");
}

Integrity list_of(const std::string& folder) {
  auto list = read_integrity(*opened(folder), Depth::kData, nullptr);
  REQUIRE(list.has_value());
  REQUIRE(list->has_value());
  if ((*list)->unusable) FAIL((*list)->unusable->message);
  return std::move(**list);
}

// Every file but the list itself and the certificate, which is made last.
void expect_whole_list(const std::string& folder) {
  Integrity list = list_of(folder);
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    files += entry.is_regular_file() ? 1 : 0;
  CHECK(list.listed == files - 2);
  CHECK(list.missing.empty());
  CHECK(list.differing.empty());
  CHECK(list.unread.empty());
  CHECK(list.unlisted.empty());
  auto verified = verify_repair(folder);
  REQUIRE(verified.has_value());
  CHECK(verified->outcome == VerifyReport::Outcome::kProved);
}

}  // namespace

TEST_CASE(
    "a repair, a reshard and a conversion write hashes of all files where that is asked for") {
  TemporaryFolder folder;
  write_listed_rows(folder / "ckpt");
  auto checkpoint = opened(folder / "ckpt");
  ApplyOptions options;
  options.integrity = true;
  options.out = folder / "repaired";
  REQUIRE(apply_plan(*checkpoint, plan_of_rows(*checkpoint, true), options).has_value());
  expect_whole_list(options.out);
  CHECK(contents(options.out + "/integrity.json").find("common.pt") != std::string::npos);

  verbs::Opened source{checkpoint, nullptr, nullptr, {}};
  VerbOptions verb_options;
  verb_options.mesh = "dp=3";
  options.out = folder / "resharded";
  REQUIRE(
      verbs::repair(source, verbs::plan_reshard(source, verb_options).value(), options, nullptr));
  expect_whole_list(options.out);
  verb_options.to = "safetensors";
  options.out = folder / "hf";
  REQUIRE(
      verbs::repair(source, verbs::plan_convert(source, verb_options).value(), options, nullptr));
  expect_whole_list(options.out);

  // The list can be verified by any program that reads it.
  auto list = nlohmann::json::parse(contents(folder / "hf/integrity.json"));
  CHECK(list["algorithm"] == "sha256");
  CHECK(list["files"].size() == 1);
  std::string data = contents(folder / "hf/model.safetensors");
  data.back() = static_cast<char>(data.back() ^ 1);
  put(folder / "hf/model.safetensors", data);
  CHECK(list_of(folder / "hf").differing.size() == 1);
  std::filesystem::remove(folder / "resharded/integrity.json");
  CHECK(verify_repair(folder / "resharded")->outcome == VerifyReport::Outcome::kBroken);
}

TEST_CASE("in place no list of hashes is written") {
  TemporaryFolder folder;
  write_listed_rows(folder / "ckpt");
  auto checkpoint = opened(folder / "ckpt");
  ApplyOptions options;
  options.integrity = options.in_place = true;
  auto refused = apply_plan(*checkpoint, plan_of_rows(*checkpoint, false), options);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().kind == ErrorKind::kUsage);
}
