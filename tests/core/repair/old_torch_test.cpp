// A repaired checkpoint must open in the torch version that wrote the source: its pickle may
// contain no class, module or field that the source's pickle lacks.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>

#include "core/fixtures.h"
#include "core/formats/dcp/dcp_formats.h"
#include "core/formats/items/items.h"
#include "core/formats/open.h"
#include "core/formats/pickle/pickle.h"
#include "core/model/builder.h"
#include "core/repair/against_source.h"
#include "core/repair/plan/plan.h"
#include "core/repair/run/apply.h"
#include "core/rules/check.h"
#include "core/temporary_folder.h"

using namespace shw;
namespace fs = std::filesystem;

namespace {

struct Names {
  std::set<std::string> classes, fields, storage_fields;
  int protocol = 0;
};

std::set<std::string> keys_of(const PickleTree& tree, NodeId dict) {
  std::set<std::string> keys;
  auto pairs = tree.items(dict);
  for (std::size_t i = 0; i + 1 < pairs.size(); i += 2)
    keys.emplace(tree.text(pairs[i]).value_or("?"));
  return keys;
}

Names names_in(const std::string& path) {
  std::string text = contents(path);
  Bytes bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  auto tree = decode_pickle(bytes, path);
  REQUIRE(tree.has_value());
  Names names;
  for (const PickleGlobal& global : tree->globals())
    names.classes.insert(global.module + "." + global.name);
  NodeId attributes = tree->attributes(tree->root());
  names.fields = keys_of(*tree, attributes);
  names.storage_fields = keys_of(*tree, tree->attributes(tree->find(attributes, "storage_meta")));
  names.protocol = tree->protocol();
  return names;
}

bool holds(const std::set<std::string>& all, const std::set<std::string>& some) {
  return std::includes(all.begin(), all.end(), some.begin(), some.end());
}

void expect_no_news(const Names& before, const Names& after) {
  CHECK(holds(before.classes, after.classes));
  // All versions of torch ignore our own attributes.
  std::set<std::string> fields = after.fields;
  std::erase_if(fields, [](const std::string& name) { return name.starts_with("shardwright_"); });
  CHECK(holds(before.fields, fields));
  CHECK(holds(before.storage_fields, after.storage_fields));
  CHECK(after.protocol <= before.protocol);
}

Plan plan_for(const Checkpoint& checkpoint) {
  auto report = check(checkpoint, {});
  REQUIRE(report.has_value());
  auto plan = make_plan(checkpoint, *report, {});
  REQUIRE(plan.has_value());
  return std::move(*plan);
}

void expect_truth(const std::string& folder, const std::string& truth_path) {
  auto result = open_checkpoint(folder);
  auto truth = test::read_truth(truth_path);
  REQUIRE(result.has_value());
  REQUIRE(truth.has_value());
  for (const auto& [fqn, expected] : *truth) {
    CAPTURE(fqn);
    auto tensor = (*result)->find(fqn);
    REQUIRE(tensor.has_value());
    auto actual = read_tensor(**result, *tensor);
    REQUIRE(actual.has_value());
    CHECK(actual->bytes == expected.bytes);
  }
}

}  // namespace

TEST_CASE("a repair names no class and no field that the torch of before did not write") {
  int seen = 0;
  for (const std::string& fixture : test::fixture_cases("shared_entry")) {
    for (bool in_place : {false, true}) {
      CAPTURE(fixture);
      CAPTURE(in_place);
      TemporaryFolder folder;
      fs::copy(fixture + "/ckpt", folder / "ckpt", fs::copy_options::recursive);
      auto checkpoint = open_checkpoint(folder / "ckpt");
      REQUIRE(checkpoint.has_value());
      Plan plan = plan_for(**checkpoint);
      CHECK(plan.undecided.empty());
      CHECK(plan.lossless);
      REQUIRE_FALSE(plan.tensors.empty());
      ApplyOptions options;
      options.out = in_place ? "" : folder / "out";
      options.in_place = in_place;
      auto repaired = apply_plan(**checkpoint, plan, options);
      if (!repaired) FAIL(repaired.error().message);
      std::string out = in_place ? folder / "ckpt" : folder / "out";
      expect_no_news(names_in(fixture + "/ckpt/.metadata"), names_in(out + "/.metadata"));
      auto verified = verified_against(out, **checkpoint);
      REQUIRE(verified.has_value());
      CHECK(verified->outcome == VerifyReport::Outcome::kProved);
      expect_truth(out, fixture + "/truth.safetensors");
      auto again = open_checkpoint(out);
      REQUIRE(again.has_value());
      CHECK(plan_for(**again).empty());
      ++seen;
    }
  }
  CHECK(seen >= 6);
}

TEST_CASE("what any torch wrote comes out of a repair in its own form") {
  int seen = 0;
  for (const char* prefix : {"s1_", "s3_", "s4_", "s5_"}) {
    for (const std::string& fixture : test::fixture_cases(prefix)) {
      if (!fs::exists(fixture + "/ckpt/.metadata")) continue;
      CAPTURE(fixture);
      TemporaryFolder folder;
      auto checkpoint = open_checkpoint(fixture + "/ckpt");
      REQUIRE(checkpoint.has_value());
      Plan plan = plan_for(**checkpoint);
      if (plan.empty()) continue;
      REQUIRE(apply_plan(**checkpoint, plan, {folder / "out"}).has_value());
      Names before = names_in(fixture + "/ckpt/.metadata"),
            after = names_in(folder / "out/.metadata");
      // Plain data, which all versions of torch ignore.
      after.fields.erase("shardwright_reordered");
      expect_no_news(before, after);
      ++seen;
    }
  }
  CHECK(seen > 0);
}

TEST_CASE("no metadata is rewritten for a dtype that old versions lack") {
  for (bool new_fields : {false, true}) {
    CheckpointBuilder builder;
    builder.set_format(kDcpFormat);
    Provenance provenance;
    provenance.properties_arity = new_fields ? 6 : 5;
    builder.set_provenance(provenance);
    builder.add_tensor("w", Dtype::kFloat8E8m0fnu, Extents{2});
    builder.add_chunk(Extents{0}, Extents{2}, {builder.file("__0_0.distcp"), 0, 1});
    auto checkpoint = builder.finish();
    CheckOptions options;
    options.depth = Depth::kMetadata;
    auto report = check(*checkpoint, options);
    REQUIRE(report.has_value());
    auto plan = make_plan(*checkpoint, *report, {});
    REQUIRE(plan.has_value());
    // Otherwise, repairing the result would plan the same again and again.
    REQUIRE(plan->operations.size() == (new_fields ? 1 : 0));
    if (new_fields) CHECK(plan->operations[0].subjects.size() == 1);
  }
}
