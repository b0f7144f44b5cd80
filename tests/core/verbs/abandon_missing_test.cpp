// Repairs of checkpoints with a missing or truncated file when the user gives a fill.
#include "core/verbs/abandon_missing.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "core/facts/storage/missing_data.h"
#include "core/repair/make_checkpoint.h"
#include "core/repair/proof/certificate.h"
#include "core/repair/proof/verify.h"
#include "core/temporary_folder.h"
#include "core/verbs/transforms.h"

using namespace shw;
namespace fs = std::filesystem;

namespace {

// Four ranks; a weight and two moments per parameter, with values counted from `first`.
std::vector<MadeTensor> trained(std::int64_t first) {
  std::vector<MadeTensor> tensors;
  for (const char* layer : {"0", "1"}) {
    for (const char* kind : {"", ".exp_avg", ".exp_avg_sq"}) {
      const std::string name = std::string("layers.") + layer + ".weight" + kind;
      MadeTensor tensor{(*kind == 0 ? "model." : "optim.state.") + name, {8, 4}, {}};
      for (std::uint32_t rank = 0; rank < 4; ++rank) {
        Values values(8);
        for (std::int64_t& value : values) value = ++first;
        tensor.chunks.push_back({{{2 * rank, 0}, {2, 4}}, {2, 4}, values, rank});
      }
      tensors.push_back(std::move(tensor));
    }
  }
  return tensors;
}

struct Trained {
  TemporaryFolder folder;
  std::string path, before;
  std::map<std::string, Values> truth, of_before;

  Trained() : path(folder / "step_2"), before(folder / "step_1") {
    write_checkpoint(path, trained(1000), "epoch");
    write_checkpoint(before, trained(0), "epoch");
    for (const MadeTensor& tensor : trained(0)) {
      truth[tensor.fqn] = values_of(*opened(path), tensor.fqn);
      of_before[tensor.fqn] = values_of(*opened(before), tensor.fqn);
    }
  }

  // Kept elements are unchanged; other values are only at lost places.
  Certificate repaired(const std::string& fill, std::int64_t lost) {
    verbs::Opened source{opened(path), nullptr, nullptr, std::nullopt};
    auto plan = verbs::plan_dropping_missing_data(source, fill, nullptr);
    if (!plan) FAIL(plan.error().message);
    REQUIRE(plan->has_value());
    // The plan is saved and read again.
    auto again = plan_from_json(plan_to_json(**plan), "plan");
    REQUIRE(again.has_value());
    ApplyOptions options;
    options.out = folder / "out";
    auto result = verbs::repair(source, *again, options, nullptr);
    if (!result) FAIL(result.error().message);
    CHECK_FALSE(result->lossless);
    auto certificate =
        certificate_from_json(contents(options.out + "/certificate.json"), "certificate");
    REQUIRE(certificate.has_value());
    auto result_now = opened(options.out);
    std::int64_t counted = 0;
    for (const TensorCertificate& tensor : certificate->tensors) {
      CAPTURE(tensor.fqn);
      const Values now = values_of(*result_now, tensor.fqn);
      const Values& was = fill == "zero" ? Values(32, 0) : of_before.at(tensor.fqn);
      for (std::int64_t i = 0; i < 32; ++i) {
        const bool is_lost =
            std::any_of(tensor.lost_boxes.begin(), tensor.lost_boxes.end(), [&](const Box& box) {
              return i / 4 >= box.offsets[0] && i / 4 < box.offsets[0] + box.sizes[0];
            });
        const auto at = static_cast<std::size_t>(i);
        CHECK(now[at] == (is_lost ? was[at] : truth.at(tensor.fqn)[at]));
        counted += is_lost ? 1 : 0;
      }
      CHECK(tensor.kept + tensor.lost == 32);
    }
    CHECK(counted == lost);
    auto alone = verify_repair(options.out);
    REQUIRE(alone.has_value());
    CHECK(alone->outcome == VerifyReport::Outcome::kProved);
    return *certificate;
  }
};

}  // namespace

TEST_CASE("what was in a missing file is given up where --fill says what is there") {
  Trained trained;
  fs::remove(trained.path + "/__2_0.distcp");
  trained.repaired("zero", 6 * 8);
}

TEST_CASE("another checkpoint fills what is gone and it counts as lost all the same") {
  Trained trained;
  fs::remove(trained.path + "/__2_0.distcp");
  trained.repaired("from:" + trained.before, 6 * 8);
}

TEST_CASE("where one moment lost rows the other one gives them up too") {
  Trained trained;
  // The last item of the file is the second moment of the last layer.
  const std::string file = trained.path + "/__1_0.distcp";
  fs::resize_file(file, fs::file_size(file) - 1);
  const Certificate certificate = trained.repaired("zero", 2 * 8);
  for (const TensorCertificate& tensor : certificate.tensors)
    CHECK(tensor.lost == (tensor.fqn.find("layers.1.weight.exp") == tensor.fqn.npos ? 0 : 8));
}

TEST_CASE("an entry that is not a tensor is left behind with its file and told") {
  Trained trained;
  fs::remove(trained.path + "/entry.distcp");
  CHECK(trained.repaired("zero", 0).dropped == std::vector<std::string>{"epoch"});
}

TEST_CASE("without an error of what to fill with nothing is given up, nor where nothing is gone") {
  Trained trained;
  verbs::Opened whole_one{opened(trained.path), nullptr, nullptr, std::nullopt};
  auto none = verbs::plan_dropping_missing_data(whole_one, "zero", nullptr);
  REQUIRE(none.has_value());
  CHECK_FALSE(none->has_value());
  fs::remove(trained.path + "/__2_0.distcp");
  verbs::Opened damaged{opened(trained.path), nullptr, nullptr, std::nullopt};
  auto unsaid = verbs::plan_dropping_missing_data(damaged, "", nullptr);
  REQUIRE(unsaid.has_value());
  CHECK_FALSE(unsaid->has_value());
  CHECK_FALSE(verbs::plan_dropping_missing_data(damaged, "ones", nullptr).has_value());
}

TEST_CASE("a file that is gone is reported with the elements that its tensors lose") {
  Trained trained;
  fs::remove(trained.path + "/__2_0.distcp");
  auto checkpoint = opened(trained.path);
  std::int64_t elements = 0;
  std::vector<std::string> lines;
  for (TensorId tensor : checkpoint->tensors()) {
    LostElements lost;
    for (ChunkId chunk : checkpoint->chunks(tensor)) {
      if (is_in_missing_file(*checkpoint, checkpoint->item(chunk))) lost.add(*checkpoint, chunk);
    }
    lost.write(*checkpoint, tensor, elements, lines);
  }
  CHECK(elements == 48);
  CHECK(lines.size() == 6);
  CHECK(lines.front() == "model.layers.0.weight: 8 of 32 elements");
  auto report = check(*checkpoint, {Depth::kMetadata, nullptr, std::nullopt}, nullptr);
  REQUIRE(report.has_value());
  REQUIRE_FALSE(report->findings.empty());
  const Finding& finding = report->findings.front();
  CHECK(finding.rule == "missing-file");
  CHECK(finding.cause.find("48 elements in all") != std::string::npos);
  auto told = std::find_if(finding.evidence.begin(), finding.evidence.end(),
                           [](const auto& one) { return one.first == "elements_of"; });
  REQUIRE(told != finding.evidence.end());
  CHECK(std::get<std::vector<std::string>>(told->second) == lines);
}
