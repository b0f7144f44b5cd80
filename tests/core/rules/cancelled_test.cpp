// A cancelled check ends inside a rule: no loop over many items of a checkpoint runs to its end.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <random>
#include <set>

#include "core/base/cancellable_range.h"
#include "core/facts/facts.h"
#include "core/facts/storage/data_checks.h"
#include "core/io/source.h"
#include "core/rules/make_contents.h"
#include "core/rules/on_fixtures.h"
#include "core/rules/rules.h"
#include "core/temporary_folder.h"

using namespace shw;
using namespace shw::test;
namespace fs = std::filesystem;

namespace {

// All inputs of the rules of a check with data.
struct Asked {
  std::shared_ptr<const Checkpoint> checkpoint;
  std::shared_ptr<const Spec> spec;
  std::vector<TensorTiling> tilings;
  ItemHeaders headers;
  DataChecks data;

  Asked(std::shared_ptr<const Checkpoint> opened, std::shared_ptr<const Spec> expected)
      : checkpoint(std::move(opened)), spec(std::move(expected)) {
    tilings = compute_tilings(*checkpoint);
    headers = *read_item_headers(*checkpoint, nullptr);
    data = *read_all_data(*checkpoint, headers, nullptr, nullptr);
  }
  CheckInput input() const {
    CheckInput asked{*checkpoint, spec.get(),   nullptr, headers,
                     data.chunks, data.objects, tilings, Depth::kData};
    asked.file_data = data.files;
    return asked;
  }
};

std::set<std::string> rules_that_find(const Facts& facts) {
  std::set<std::string> found;
  for (const Rule& rule : all_rules()) {
    std::vector<Finding> findings;
    (void)run_rule(rule, facts, findings);
    if (!findings.empty()) found.insert(std::string(rule.id));
  }
  return found;
}

// True for rules that only look at files, or at who wrote them.
bool looks_at_no_tensor(const std::string& rule) {
  static const std::set<std::string> kRules = {"data-newer",  "leftover-data", "leftover-metadata",
                                               "path-escape", "portability",   "rank-hole"};
  return kRules.contains(rule);
}

// This many parameters, each with impossible moments.
MadeModel many_moments(int pairs) {
  MadeModel model;
  for (int i = 0; i < pairs; ++i) {
    const std::string key = "layers." + std::to_string(i) + ".weight";
    model.add(key, Dtype::kFloat32, {64}, Numbers(64, 1));
    model.pair(key, {64}, Numbers(64, 1e3), Numbers(64, 1e-9));
    model.step(key, 100);
  }
  return model;
}

}  // namespace

TEST_CASE("a loop comes to no further item once it is cancelled") {
  Progress progress;
  std::vector<int> items = {1, 2, 3, 4, 5};
  int sum = 0;
  for (int item : cancellable_range(items, &progress)) {
    sum += item;
    if (item == 3) progress.cancel();
  }
  CHECK(sum == 6);
  for (int item : cancellable_range(items, &progress)) sum += item;
  CHECK(sum == 6);
  for (int item : cancellable_range(items, nullptr)) sum += item;
  CHECK(sum == 21);
  std::uint32_t rows = 0;
  for (TensorId tensor : cancellable_range(IdRange<TensorId>{3, 9}, nullptr))
    rows += static_cast<std::uint32_t>(tensor);
  CHECK(rows == 3 + 4 + 5 + 6 + 7 + 8);
}

TEST_CASE("a sort that can be cancelled is a stable one") {
  std::mt19937 random(3);
  for (std::size_t count : {0u, 1u, 16'384u, 16'385u, 100'000u}) {
    std::vector<std::pair<std::uint32_t, std::size_t>> items;
    for (std::size_t i = 0; i < count; ++i) items.emplace_back(random() % 1'000, i);
    auto wanted = items, stopped = items;
    auto less = [](const auto& a, const auto& b) { return a.first < b.first; };
    std::stable_sort(wanted.begin(), wanted.end(), less);
    Progress progress;
    cancellable_stable_sort(items.begin(), items.end(), less, &progress);
    CHECK(items == wanted);
    progress.cancel();
    auto before = stopped;
    cancellable_stable_sort(stopped.begin(), stopped.end(), less, &progress);
    CHECK(stopped == before);
  }
}

TEST_CASE("no rule finds anything in the tensors of a check that was cancelled") {
  std::set<std::string> met;
  Progress stopped;
  stopped.cancel();
  for (const char* family : {"torch-2.14", "torch-2.6", "real-code"}) {
    for (const auto& entry : fs::directory_iterator(fs::path(SHW_TEST_DATA) / family)) {
      auto checkpoint = open_checkpoint((entry.path() / "ckpt").string());
      if (!checkpoint) continue;
      auto spec = load_spec((entry.path() / "spec.json").string());
      Asked asked(*checkpoint, spec ? std::make_shared<const Spec>(std::move(*spec)) : nullptr);
      Facts facts = build_facts(asked.input());
      std::set<std::string> found = rules_that_find(facts);
      met.insert(found.begin(), found.end());
      CheckInput input = asked.input();
      input.progress = &stopped;
      CAPTURE(entry.path().string());
      for (const std::string& rule : rules_that_find(build_facts(input)))
        CHECK_MESSAGE(looks_at_no_tensor(rule), rule);
    }
  }
  // Rules that report something about these checkpoints.
  for (const char* rule :
       {"placement-axis-moved", "glu-split-local", "local-saved-as-global", "axis-dropped",
        "topology-locked", "fused-per-rank", "strided-recorded-plain", "shape-mismatch"})
    CHECK_MESSAGE(met.contains(rule), rule);
}

TEST_CASE("a look at values stops at the tensor at which it is cancelled") {
  constexpr int kPairs = 60, kAt = 9;
  TemporaryFolder folder;
  Progress progress;
  ContentWriter(folder / "many").write(many_moments(kPairs));
  auto inner = open_directory(folder / "many");
  REQUIRE(inner.has_value());
  std::atomic<int> reads{0};
  std::atomic<int> cancel_at{-1};
  auto checkpoint =
      open_checkpoint(faulty_directory(*inner, [&](const std::string&, std::uint64_t, std::size_t) {
        if (++reads == cancel_at) progress.cancel();
        return std::nullopt;
      }));
  REQUIRE(checkpoint.has_value());
  Asked asked(*checkpoint, nullptr);
  CheckInput input = asked.input();
  input.progress = &progress;
  const Facts facts = build_facts(input);

  reads = 0;
  auto looks = read_optimizer_values(facts, facts.optimizer_settings);
  REQUIRE(looks.has_value());
  CHECK(looks->moments.size() == kPairs);
  CHECK(reads >= 2 * kPairs);

  reads = 0;
  cancel_at = kAt;
  auto stopped = read_optimizer_values(facts, facts.optimizer_settings);
  REQUIRE_FALSE(stopped.has_value());
  CHECK(stopped.error().kind == ErrorKind::kCancelled);
  CHECK(reads <= kAt + 8);  // the other tensor of the pair, and its header
}
