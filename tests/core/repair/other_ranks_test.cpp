// Checkpoints in which each rank loads by its own index: in-place repairs keep every rank's
// entries; new results have one value of each entry and state what they lack.
#include <filesystem>
#include <fstream>

#include "core/repair/run/apply.h"
#include "core/repair/run/estimate_text.h"
#include "core/rules/make_rank_local.h"
#include "core/temporary_folder.h"
#include "core/verbs/transforms.h"
#include "core/verbs/verbs.h"

using namespace shw;
using namespace shw::test;

namespace {

// "b", "lr" and entries of single ranks agree; "seed" differs, and "w" on request.
std::string saved_by_ranks(const std::string& folder, bool own_tensor, bool own_entry) {
  std::vector<MadeModel> models(3);
  for (std::size_t rank = 0; rank < models.size(); ++rank) {
    MadeModel& model = models[rank];
    const double number = static_cast<double>(rank);
    model.add("b", Dtype::kFloat32, {4}, distinct(4));
    model.add("w", Dtype::kFloat32, {4}, Numbers(4, own_tensor ? number : 7));
    model.entries = {{"lr", pickled_real(.5)}, {"seed", pickled_real(own_entry ? number : 7)}};
  }
  models[2].entries.push_back({"only", pickled_real(2)});
  return rank_local(folder, models);
}

Certificate certificate_of_ranks(const std::string& folder) {
  auto bytes = contents(folder + "/" + kCertificateFile);
  auto certificate = certificate_from_json(bytes, folder);
  REQUIRE(certificate.has_value());
  return *certificate;
}

void check_other_ranks(const std::string& out, const Result<RepairResult>& made,
                       const std::vector<std::string>& lacks) {
  REQUIRE(made.has_value());
  CHECK(made->of_other_ranks == lacks);
  CHECK(made->lossless == lacks.empty());
  const Certificate certificate = certificate_of_ranks(out);
  CHECK(certificate.of_other_ranks == lacks);
  CHECK(certificate.lossless == lacks.empty());
  CHECK_FALSE(std::filesystem::exists(out + "/" + kLostFile));
  auto opened = open_checkpoint(out);
  REQUIRE(opened.has_value());
  auto report = verify_repair(**opened);
  REQUIRE(report.has_value());
  CHECK(report->outcome == VerifyReport::Outcome::kProved);
  CHECK((report->reasons.size() > 1) == !lacks.empty());
}

}  // namespace

// A tensor's halves of two ranks, joined along the wrong axis: [1, 6, 2] for [1, 3, 4].
std::string moved_by_ranks(const std::string& folder, bool own_entry) {
  std::vector<MadeModel> models(2);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    models[rank].add("w", Dtype::kFloat32, {1, 6, 2}, distinct(12));
    models[rank].tensors[0].tiles = {
        {{0, 3 * static_cast<std::int64_t>(rank), 0}, {1, 3, 2}, rank}};
    models[rank].entries = {{"seed", pickled_real(own_entry ? rank : 7)}};
  }
  return rank_local(folder, models);
}

TEST_CASE("a plan says beforehand what is left out as its repair says afterwards") {
  TemporaryFolder scratch;
  for (bool own_entry : {false, true}) {
    CAPTURE(own_entry);
    VerbOptions options;
    options.checkpoint = moved_by_ranks(scratch / std::to_string(own_entry), own_entry);
    auto opened = verbs::open(options);
    REQUIRE(opened.has_value());
    Spec spec;
    spec.entries["w"].shape = {1, 3, 4};
    opened->spec = std::make_shared<const Spec>(spec);
    auto report = verbs::check(*opened, Depth::kHeaders);
    REQUIRE(report.has_value());
    auto plan = verbs::plan(*opened, *report, "");
    REQUIRE(plan.has_value());
    REQUIRE_FALSE(plan->empty());
    const std::vector<std::string> lacks(own_entry ? 1 : 0, "seed");
    CHECK(plan->of_other_ranks == lacks);
    CHECK(plan->lossless == lacks.empty());
    const std::string json = plan_to_json(*opened->checkpoint, *plan);
    CHECK((json.find("\"of_other_ranks\"") != std::string::npos) == own_entry);
    CHECK((summary_text_of(*plan).find("Nothing is lost") != std::string::npos) != own_entry);
    CHECK((summary_text_of(*plan).find("values of seed are left out") != std::string::npos) ==
          own_entry);
    // The plan is saved and read again as a user would do it.
    const std::string path = options.checkpoint + ".json";
    std::ofstream(path) << json;
    auto again = verbs::read_plan(*opened, path);
    REQUIRE(again.has_value());
    CHECK(again->of_other_ranks == lacks);
    CHECK(again->lossless == plan->lossless);
    const std::string out = options.checkpoint + "-repaired";
    check_other_ranks(out, verbs::repair(*opened, *plan, {out}), lacks);
    Plan steps;
    steps.format = "dcp";
    steps.steps = {DropStep{{"w"}}};
    auto outlook = verbs::estimate_steps(*opened, steps, kDefaultMemory, nullptr);
    REQUIRE(outlook.has_value());
    CHECK(outlook->of_other_ranks == lacks);
  }
}

TEST_CASE(
    "what other ranks had and was not copied is recognised by the answer and the certificate") {
  TemporaryFolder scratch;
  for (const auto& [own_tensor, own_entry] :
       {std::pair(false, false), {false, true}, {true, true}}) {
    CAPTURE(own_tensor);
    CAPTURE(own_entry);
    const std::string name = std::to_string(own_tensor) + std::to_string(own_entry);
    const std::string folder = saved_by_ranks(scratch / name, own_tensor, own_entry);
    std::vector<std::string> lacks;
    if (own_tensor) lacks.emplace_back("w");
    if (own_entry) lacks.emplace_back("seed");
    VerbOptions options;
    options.checkpoint = folder;
    auto opened = verbs::open(options);
    REQUIRE(opened.has_value());
    const std::string converted = folder + "-converted";
    Plan steps;
    steps.format = "dcp";
    check_other_ranks(converted, verbs::repair(*opened, steps, {converted}, nullptr), lacks);
    // An entry that is dropped anyway is not mentioned.
    steps.steps = {DropStep{{"seed"}}};
    std::erase(lacks, "seed");
    auto dropped = verbs::repair(*opened, steps, {folder + "-dropped"}, nullptr);
    REQUIRE(dropped.has_value());
    CHECK(dropped->of_other_ranks == lacks);
  }
}
