// A repair with further steps in one pass: the same tensors, losses and proof as with one verb
// after the other.
#include <doctest/doctest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "core/repair/make_checkpoint.h"
#include "core/repair/proof/certificate.h"
#include "core/temporary_folder.h"
#include "core/verbs/resume.h"
#include "core/verbs/transforms.h"
#include "core/verbs/written_as.h"

using namespace shw;

namespace {

using PassJson = nlohmann::ordered_json;

constexpr const char* kMoment = "optimizer.state.w.exp_avg";

// "w" and "x" of [6, 4] in two row tiles (chunks 0 to 3), a moment of [3, 4], and raw floats in
// side.bin.
void write_pass(const std::string& path) {
  std::vector<MadeTensor> tensors;
  for (const char* fqn : {"w", "x"}) {
    MadeTensor tensor{fqn, {6, 4}, {}};
    for (std::int64_t i = 0; i < 2; ++i) {
      Values values;
      for (std::int64_t k = 0; k < 12; ++k)
        values.push_back((fqn[0] == 'w' ? 0 : 1000) + 100 * i + k);
      tensor.chunks.push_back(
          {{{3 * i, 0}, {3, 4}}, {3, 4}, values, static_cast<std::uint32_t>(i)});
    }
    tensors.push_back(std::move(tensor));
  }
  Values half(12, 7);
  tensors.push_back({kMoment, {3, 4}, {{whole(Extents{3, 4}), {3, 4}, half, 1}}});
  write_checkpoint(path, tensors);
  const Bytes side = shw::floats(Values(24, 9));
  put(path + "/side_rank_1.bin",
      std::string(reinterpret_cast<const char*>(side.data()), side.size()));
}

struct PassCase {
  const char* name;
  std::vector<Diagnosis> diagnoses;
  FillChoice fill = FillChoice::kDefault;
};

std::vector<PassCase> pass_cases() {
  const TensorId w{0}, x{1}, moment{2};
  const RetainedChunk rows{ChunkId{4}, {{0, 0}, {3, 4}}, {0, 0}};
  return {
      {"relabelled", {WrongBoxes{w, {6, 4}, {{{3, 0}, {3, 4}}, {{0, 0}, {3, 4}}}}}},
      {"an axis that moved", {AxisMoved{w, 0, 1, 2, {3, 8}}}},
      {"partly lost, zeros", {PartlyLost{moment, {6, 4}, {rows}, ""}}, FillChoice::kZero},
      {"partly lost, from the model", {PartlyLost{moment, {6, 4}, {rows}, "w"}}},
      {"partly lost, from another",
       {PartlyLost{x, {6, 4}, {{ChunkId{2}, {{0, 0}, {3, 4}}, {3, 0}}}, ""}},
       FillChoice::kReference},
      {"blocks permuted inside of chunks", {BlocksPermuted{w, 0, 1, {5, 4, 3, 2, 1, 0}}}},
      {"blocks permuted as chunks", {BlocksPermuted{w, 0, 3, {1, 0}}}},
      {"transposed", {Transposed{w, 0, 1, {4, 6}}}},
      {"names exchanged", {Renamed{w, "x", {}}, Renamed{x, "w", {}}}},
      {"from a side file",
       {RestoredFromRankFiles{
           w, {6, 4}, {{"side_rank_1.bin", 0, 96, Dtype::kFloat32, {6, 4}, {0, 0}}}}}},
      {"several at once",
       {BlocksPermuted{w, 0, 1, {5, 4, 3, 2, 1, 0}}, PartlyLost{moment, {6, 4}, {rows}, "x"}}},
  };
}

Plan plan_of_pass(const Checkpoint& checkpoint, const PassCase& one,
                  std::shared_ptr<const Checkpoint> other) {
  Finding finding;
  finding.rule = "local-saved-as-global";
  finding.diagnoses = one.diagnoses;
  for (const Diagnosis& diagnosis : one.diagnoses)
    finding.subjects.emplace_back(checkpoint.fqn(tensor_of(diagnosis)));
  CheckReport report;
  report.findings = {finding};
  PlanOptions options;
  options.fill = one.fill;
  if (one.fill == FillChoice::kReference) options.fill_source = std::move(other);
  auto plan = make_plan(checkpoint, report, options);
  if (!plan) FAIL(plan.error().message);
  REQUIRE(plan->repairs());
  return std::move(*plan);
}

verbs::Opened opened_pass(const std::string& path) {
  return {opened(path), nullptr, nullptr, {}};
}

using Hashes = std::map<std::string, std::string>;

Hashes hashes_of_pass(const std::string& path) {
  auto hashed = verbs::hash(opened_pass(path), {});
  REQUIRE(hashed.has_value());
  Hashes hashes;
  for (const TensorHash& tensor : hashed->tensors) {
    REQUIRE(tensor.fingerprint.has_value());
    hashes[tensor.fqn] = to_text(tensor.shape) + std::to_string(tensor.fingerprint->a) + " " +
                         std::to_string(tensor.fingerprint->b);
  }
  return hashes;
}

Certificate certificate_of_pass(const std::string& path) {
  auto directory = posix_store().read_folder(path);
  REQUIRE(directory.has_value());
  auto certificate = certificate_in(**directory);
  if (!certificate) FAIL(certificate.error().message);
  return std::move(*certificate);
}

void check_is_proved(const std::string& result, const std::string& source) {
  for (const std::string& against : {std::string(), source}) {
    auto report = verbs::verify(result, nullptr, against);
    REQUIRE(report.has_value());
    if (report->outcome != VerifyReport::Outcome::kProved)
      FAIL(report->reasons.front() << " against " << against);
  }
}

void check_repaired(const verbs::Opened& source, const Plan& plan, const std::string& out) {
  auto made = verbs::repair(source, plan, {out}, nullptr);
  if (!made) FAIL(made.error().place.tensor << ": " << made.error().message);
}

// Runs one verb after the other.
std::string made_one_by_one(const TemporaryFolder& folder, const verbs::Opened& source,
                            const Plan& plan, const VerbOptions& said) {
  check_repaired(source, plan, folder / "step-0");
  std::string last = folder / "step-0";
  for (std::size_t i = 0; i < said.then.size(); ++i) {
    const verbs::Opened now = opened_pass(last);
    VerbOptions one = said;
    one.then = {said.then[i]};
    Plan next = verbs::empty_plan_for(now);
    auto added = verbs::add_steps(now, one, next);
    if (!added) FAIL(added.error().message);
    last = folder / ("step-" + std::to_string(i + 1));
    check_repaired(now, next, last);
  }
  return last;
}

void check_one_pass(const PassCase& one, const std::vector<std::string>& then) {
  CAPTURE(std::string(one.name));
  TemporaryFolder folder;
  write_pass(folder / "ckpt");
  write_pass(folder / "other");
  const verbs::Opened source = opened_pass(folder / "ckpt");
  const Plan repair = plan_of_pass(*source.checkpoint, one, opened(folder / "other"));
  VerbOptions said;
  said.then = then;
  Plan plan = repair;
  auto added = verbs::add_steps(source, said, plan);
  if (!added) FAIL(added.error().message);
  // The plan is printed and read again.
  const std::string text = plan_to_json(*source.checkpoint, plan);
  auto again = plan_from_json(*source.checkpoint, text, "plan.json");
  if (!again) FAIL(again.error().message << "\n" << text);
  CHECK(plan_to_json(*source.checkpoint, *again) == text);
  check_repaired(source, *again, folder / "at-once");
  const std::string last = made_one_by_one(folder, source, repair, said);
  CHECK(hashes_of_pass(folder / "at-once") == hashes_of_pass(last));
  check_is_proved(folder / "at-once", folder / "ckpt");
  const Certificate at_once = certificate_of_pass(folder / "at-once"),
                    in_turn = certificate_of_pass(last);
  CHECK(at_once.operations.size() == repair.operations.size());
  bool lossless = true;
  for (std::size_t i = 0; i <= then.size(); ++i)
    lossless = lossless && certificate_of_pass(folder / ("step-" + std::to_string(i))).lossless;
  CHECK(at_once.lossless == lossless);
  REQUIRE(at_once.tensors.size() == in_turn.tensors.size());
  std::map<std::string, const TensorCertificate*> by_name;
  for (const TensorCertificate& tensor : in_turn.tensors) by_name[tensor.fqn] = &tensor;
  for (const TensorCertificate& tensor : at_once.tensors) {
    CAPTURE(tensor.fqn);
    CHECK(tensor.lost == by_name.at(tensor.fqn)->lost);
    CHECK(tensor.kept == by_name.at(tensor.fqn)->kept);
    CHECK(tensor.fill == by_name.at(tensor.fqn)->fill);
    CHECK(tensor.fill_from == by_name.at(tensor.fqn)->fill_from);
  }
}

}  // namespace

TEST_CASE("one pass: a repair with reshard makes what the verbs make one after the other") {
  for (const PassCase& one : pass_cases()) check_one_pass(one, {"reshard:dp=2"});
}

TEST_CASE("one pass: a repair with convert makes what the verbs make one after the other") {
  for (const PassCase& one : pass_cases()) check_one_pass(one, {"convert:safetensors"});
}

TEST_CASE("one pass: steps of all kinds follow a repair") {
  const PassCase one{"blocks", {BlocksPermuted{TensorId{0}, 0, 1, {5, 4, 3, 2, 1, 0}}}};
  check_one_pass(one, {"reshard:dp=3", "convert:safetensors"});
  check_one_pass(one, {"cast:bfloat16", "reshard:dp=2,tp=2"});
  check_one_pass(one, {R"({"step": "rename", "from": "w", "to": "model.w"})", "drop:x*"});
}

TEST_CASE("one pass: a cast changes the weights and leaves the optimizer's states") {
  TemporaryFolder folder;
  write_pass(folder / "ckpt");
  const verbs::Opened source = opened_pass(folder / "ckpt");
  VerbOptions said;
  said.then = {"cast:bfloat16"};
  Plan plan = verbs::empty_plan_for(source);
  auto added = verbs::add_steps(source, said, plan);
  if (!added) FAIL(added.error().message);
  REQUIRE(plan.steps.size() == 1);
  CHECK(std::get<CastStep>(plan.steps[0]).tensors == Patterns{"w", "x"});
  REQUIRE(added->size() == 1);
  CHECK(added->front().find("not weights") != std::string::npos);
}

TEST_CASE("one pass: what --then does not know is a usage error that says what there is") {
  TemporaryFolder folder;
  write_pass(folder / "ckpt");
  const verbs::Opened source = opened_pass(folder / "ckpt");
  for (const char* wrong : {"reshard", "reshard:dp", "convert:gguf-9", "cast:int7", "drop:", "turn",
                            "{\"step\": \"turn\"}", "{", "cast:int8"}) {
    CAPTURE(wrong);
    VerbOptions said;
    said.then = {wrong};
    Plan plan = verbs::empty_plan_for(source);
    auto added = verbs::add_steps(source, said, plan);
    REQUIRE_FALSE(added.has_value());
    CHECK(added.error().kind == ErrorKind::kUsage);
  }
}

TEST_CASE("one pass: a format has the name of its program too, and --to takes both") {
  TemporaryFolder folder;
  write_pass(folder / "ckpt");
  const verbs::Opened source = opened_pass(folder / "ckpt");
  for (const char* word : {"convert:torch_dist", "convert:megatron-dist"}) {
    VerbOptions said;
    said.then = {word};
    Plan plan = verbs::empty_plan_for(source);
    REQUIRE(verbs::add_steps(source, said, plan).has_value());
    CHECK(plan.format == "megatron-dist");
  }
  CHECK(verbs::convert_target("megatron-dist").value() == "torch_dist");
  CHECK(verbs::convert_target("torch_dist").value() == "torch_dist");
  CHECK_FALSE(verbs::convert_target("megatron").has_value());
}

TEST_CASE("one pass: a plan that was edited by hand does what it says") {
  TemporaryFolder folder;
  write_pass(folder / "ckpt");
  const verbs::Opened source = opened_pass(folder / "ckpt");
  VerbOptions said;
  said.then = {"reshard:dp=2"};
  Plan plan = plan_of_pass(*source.checkpoint, pass_cases()[0], nullptr);
  REQUIRE(verbs::add_steps(source, said, plan).has_value());
  PassJson json = PassJson::parse(plan_to_json(*source.checkpoint, plan));
  PassJson& chunks = json["target"]["tensors"][0]["chunks"];
  REQUIRE(chunks.size() == 2);
  std::swap(chunks[0]["item"], chunks[1]["item"]);
  json["steps"].push_back({{"step", "rename"}, {"from", "w"}, {"to", "v"}});
  // Keys that the program adds to every printed answer.
  for (const char* key : {"path", "tool", "format", "seconds"}) json[key] = "x";
  auto edited = plan_from_json(*source.checkpoint, json.dump(), "plan.json");
  if (!edited) FAIL(edited.error().message);
  check_repaired(source, *edited, folder / "out");
  // The two exchanges cancel out.
  CHECK(values_of(*opened(folder / "out"), "v") == values_of(*source.checkpoint, "w"));
  check_is_proved(folder / "out", folder / "ckpt");
}

TEST_CASE("one pass: plans of older versions are refused and say how to make them again") {
  TemporaryFolder folder;
  write_pass(folder / "ckpt");
  const auto checkpoint = opened(folder / "ckpt");
  for (const char* old :
       {R"({"schema": "shardwright/1", "plan": 1, "operations": [], "tensors": []})",
        R"({"schema": "shardwright/1", "plan": 2, "steps": []})",
        R"({"schema": "shardwright/2", "plan": 4, "steps": []})"}) {
    auto read = plan_from_json(*checkpoint, old, "plan.json");
    REQUIRE_FALSE(read.has_value());
    CHECK(read.error().kind == ErrorKind::kUnsupported);
    CHECK(read.error().advice.find("plan CHECKPOINT --json") != std::string::npos);
  }
  // Repair steps must come first, and belong to one checkpoint.
  Plan plan = plan_of_pass(*checkpoint, pass_cases()[0], nullptr);
  plan.steps.emplace_back(DropStep{{"x"}});
  PassJson json = PassJson::parse(plan_to_json(*checkpoint, plan));
  CHECK_FALSE(plan_from_json(json.dump(), "plan.json").has_value());
  std::swap(json["steps"].front(), json["steps"].back());
  CHECK_FALSE(plan_from_json(*checkpoint, json.dump(), "plan.json").has_value());
}

TEST_CASE("in place: steps that move no byte replace .metadata alone, and undo takes them back") {
  TemporaryFolder folder;
  write_pass(folder / "ckpt");
  const std::string before = contents(folder / "ckpt/.metadata");
  const Hashes old_hashes = hashes_of_pass(folder / "ckpt");
  const verbs::Opened source = opened_pass(folder / "ckpt");
  Plan plan = plan_of_pass(*source.checkpoint, pass_cases()[0], nullptr);
  plan.steps.emplace_back(RenameStep{"w", "model.w"});
  plan.steps.emplace_back(DropStep{{"x"}});
  ApplyOptions options;
  options.in_place = true;
  check_is_proved(
      [&] {
        auto made = verbs::repair(source, plan, options, nullptr);
        if (!made) FAIL(made.error().place.tensor << ": " << made.error().message);
        return made->output;
      }(),
      {});
  const auto result = opened(folder / "ckpt");
  CHECK(result->tensor_count() == 2);
  Values halves = values_of(*source.checkpoint, "w");
  std::rotate(halves.begin(), halves.begin() + 12, halves.end());
  CHECK(values_of(*result, "model.w") == halves);
  CHECK(certificate_of_pass(folder / "ckpt").dropped == std::vector<std::string>{"x"});
  REQUIRE(verbs::undo(folder / "ckpt").has_value());
  CHECK(contents(folder / "ckpt/.metadata") == before);
  CHECK(hashes_of_pass(folder / "ckpt") == old_hashes);
}

TEST_CASE("in place: the first step that moves bytes is named") {
  TemporaryFolder folder;
  write_pass(folder / "ckpt");
  const verbs::Opened source = opened_pass(folder / "ckpt");
  Plan plan = verbs::empty_plan_for(source);
  plan.steps.emplace_back(RenameStep{"w", "v"});
  plan.steps.emplace_back(CastStep{{"x"}, Dtype::kBfloat16});
  ApplyOptions options;
  options.in_place = true;
  auto refused = verbs::repair(source, plan, options, nullptr);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().message.starts_with("step 2 (cast)"));
  CHECK(refused.error().place.tensor == "x");
  CHECK_FALSE(std::filesystem::exists(folder / "ckpt/certificate.json"));
  plan.steps = {RetileStep{{"x"}, {{{{0, 0}, {3, 4}}, 0}, {{{3, 0}, {3, 4}}, 1}}}};
  CHECK(check_in_place(*source.checkpoint, plan).has_value());
  plan.steps = {RetileStep{{"x"}, {}}};
  CHECK_FALSE(check_in_place(*source.checkpoint, plan).has_value());
  plan.format = "safetensors";
  CHECK_FALSE(check_in_place(*source.checkpoint, plan).has_value());
}
