// Numbers outside the range of their new dtype: counted once, with any number of ranks and kills.
#include <doctest/doctest.h>

#include <chrono>

#include "core/cluster/loopback.h"
#include "core/cluster/transport_team.h"
#include "core/dead_process.h"
#include "core/faulty_store.h"
#include "core/io/path_text.h"
#include "core/transform/drawn_plan.h"

using namespace shw;

namespace {

// Random bits, with all exponents equally likely: many are out of range.
void draw_casts(test::DrawnPlan& plan) {
  test::Dice dice(26);
  plan.wanted["a"] = test::random_tensor(Dtype::kFloat32, {24, 10}, dice);
  plan.wanted["b"] = test::random_tensor(Dtype::kFloat64, {7, 9}, dice);
  plan.wanted["b2"] = test::random_tensor(Dtype::kFloat64, {7, 9}, dice);
  plan.wanted["c"] = test::random_tensor(Dtype::kFloat16, {5, 30}, dice);
  plan.wanted["d"] = test::random_tensor(Dtype::kBfloat16, {40}, dice);
  test::save_in(plan.store, plan.wanted, dice);
  plan.steps = {CastStep{{"a"}, Dtype::kFloat8E4m3fn},
                CastStep{{"a"}, Dtype::kFloat32},  // the cast back does not restore lost elements
                // Values in lost boxes may be out of range too, and count only as lost.
                FillStep{{"b"}, {{Box{{2, 0}, {3, 9}}}}, 0, "", "b2"},
                CastStep{{"b"}, Dtype::kFloat16}, CastStep{{"c"}, Dtype::kFloat8E4m3fn},
                CastStep{{"d"}, Dtype::kFloat32}, SplitStep{"a", 0, {9, 15}, {"a.0", "a.1"}},
                ReshardStep{{"*"}, {{{"dp", 3}}}, {{Placement::Kind::kShard, 0, 1}}}};
  for (const Step& step : plan.steps) std::visit(test::PlainSteps{plan.wanted}, step);
}

std::size_t lost_numbers(const test::PlainTensor& tensor) {
  return static_cast<std::size_t>(
      std::count(tensor.out_of_range.begin(), tensor.out_of_range.end(), true));
}

}  // namespace

TEST_CASE("the answer and the certificate say how many numbers a cast could not say") {
  test::DrawnPlan plan;
  draw_casts(plan);
  const TargetState all = test::taken(test::open_in(plan.store, "/ck"), plan.steps);
  auto made = make_target(plan.store, all, test::run_into(plan, all, "/out"), nullptr);
  REQUIRE(made.has_value());
  CHECK_FALSE(made->lossless);
  std::map<std::string, std::int64_t> wanted;
  for (const auto& [fqn, tensor] : plan.wanted) {
    if (lost_numbers(tensor) != 0) wanted[fqn] = static_cast<std::int64_t>(lost_numbers(tensor));
  }
  CHECK(wanted.size() == 4);
  CHECK(made->out_of_range == wanted);
  // Elements out of range were not filled: only those of the fill step are listed.
  const FilledReport filled = filled_report_of(*test::open_in(plan.store, "/out"));
  REQUIRE(filled.tensors.size() == 1);
  CHECK(filled.tensors.front().fqn == "b");
  CHECK(filled.tensors.front().lost == 27);
  test::proved_files(plan, all, "/out");
}

TEST_CASE("a run that is killed anywhere counts what it had cast before") {
  test::DrawnPlan plan;
  draw_casts(plan);
  const TargetState all = test::taken(test::open_in(plan.store, "/ck"), plan.steps);
  const std::string owner = test::dead_process();
  const auto bytes = std::as_bytes(std::span(owner));
  std::size_t most_kept = 0;
  bool finished = false;
  for (int last = 0; !finished && last < 200; ++last) {
    CAPTURE(last);
    const std::string out = "/out" + std::to_string(last);
    int step = 0;
    FaultyStore dying(plan.store, [&](const std::string&, const std::string& path) {
      return step++ >= last ? std::optional<Error>(Error{ErrorKind::kIo, "killed", {path}})
                            : std::nullopt;
    });
    finished = make_target(dying, all, test::run_into(plan, all, out), nullptr).has_value();
    for (const std::string& name : plan.store.names("/")) {
      if (name.find(kPartialMark) != std::string::npos)
        plan.store.put("/" + name + "/" + kOwnerFile, {bytes.begin(), bytes.end()});
    }
    if (!plan.store.exists(out)) {
      auto made = make_target(plan.store, all, test::run_into(plan, all, out), nullptr);
      if (!made) FAIL(made.error().message);
      most_kept = std::max(most_kept, made->files_kept);
    }
    test::proved_files(plan, all, out);
  }
  CHECK(finished);
  CHECK(most_kept >= 3);
}

TEST_CASE("a certificate that counts too few or too many of them is broken") {
  test::DrawnPlan plan;
  draw_casts(plan);
  const TargetState all = test::taken(test::open_in(plan.store, "/ck"), plan.steps);
  REQUIRE(make_target(plan.store, all, test::run_into(plan, all, "/out"), nullptr).has_value());
  const std::string path = std::string("/out/") + kCertificateFile;
  const Bytes whole = plan.store.get(path).value();
  using Outcome = VerifyReport::Outcome;
  std::shared_ptr<const Checkpoint> source;
  auto outcome = [&](const std::function<void(TensorCertificate&)>& lie) {
    auto certificate = certificate_from_json(
        {reinterpret_cast<const char*>(whole.data()), whole.size()}, kCertificateFile);
    REQUIRE(certificate.has_value());
    for (TensorCertificate& tensor : certificate->tensors) {
      if (tensor.fqn == "b") lie(tensor);
    }
    const std::string text = certificate_to_json(*certificate);
    const auto bytes = std::as_bytes(std::span(text));
    plan.store.put(path, {bytes.begin(), bytes.end()});
    auto proof = verify_repair(*test::open_in(plan.store, "/out"), nullptr, source);
    REQUIRE(proof.has_value());
    if (source == nullptr) return proof->outcome;
    // Several processes get the same result.
    auto ended = run_on_threads(3, {}, [&](Transport& transport) -> Status {
      TransportTeam team(transport, std::chrono::seconds(60));
      SHW_TRY(auto told, verify_repair(*test::open_in(plan.store, "/out"), nullptr, source, &team));
      CHECK(told.outcome == proof->outcome);
      CHECK(told.reasons == proof->reasons);
      return {};
    });
    for (const Status& one : ended) CHECK(one.has_value());
    return proof->outcome;
  };
  // The certificate was resealed with consistent sums, so only the source reveals the change.
  auto one_less = [](TensorCertificate& tensor) {
    --tensor.out_of_range;
    ++tensor.kept;
  };
  auto one_more = [](TensorCertificate& tensor) {
    ++tensor.out_of_range;
    --tensor.kept;
  };
  CHECK(outcome(one_less) == Outcome::kProved);
  source = all.inputs.front();
  CHECK(outcome([](TensorCertificate&) {}) == Outcome::kProved);
  CHECK(outcome(one_less) == Outcome::kBroken);
  CHECK(outcome(one_more) == Outcome::kBroken);
  source = nullptr;
  CHECK(outcome([](TensorCertificate&) {}) == Outcome::kProved);
  CHECK(outcome([](TensorCertificate& tensor) { --tensor.out_of_range; }) == Outcome::kBroken);
  CHECK(outcome([](TensorCertificate& tensor) { tensor.out_of_range = 0; }) == Outcome::kBroken);
  CHECK(outcome([](TensorCertificate& tensor) { tensor.is_cast = false; }) == Outcome::kBroken);
  CHECK(outcome([](TensorCertificate& tensor) {
          tensor.kept += tensor.out_of_range + 1;
          tensor.out_of_range = -1;
        }) == Outcome::kBroken);
}
