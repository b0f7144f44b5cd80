// With a stand-in for ssh that runs the command on this machine.
#include "core/verbs/verbs_over_ssh.h"

#include <doctest/doctest.h>

#include "core/base/version.h"
#include "core/fixtures.h"
#include "core/formats/open.h"
#include "core/io/remote/other_host.h"
#include "core/model/evidence.h"
#include "core/report/report.h"

using namespace shw;
using shw::test::OtherHost;

namespace {

// A host whose shardwright writes `answer` and exits with `code`.
struct AnsweringHost : OtherHost {
  explicit AnsweringHost(const std::string& answer, int code = 0)
      : OtherHost("cat \"$(dirname \"$0\")/answer\"\nexit " + std::to_string(code) + "\n") {
    put("answer", answer);
  }
};

VerbOptions options_over_ssh() {
  VerbOptions options;
  options.checkpoint = "ssh://host/runs/step_1";
  return options;
}

Finding local_finding() {
  Finding finding;
  finding.rule = "local-saved-as-global";
  finding.subjects = {"optimizer.state.w.exp_avg"};
  finding.cause = "one rank's shard was saved as the whole";
  return finding;
}

}  // namespace

TEST_CASE("check_over_ssh: only findings of equal text take the diagnoses of this machine") {
  CheckReport before;
  before.findings = {local_finding(), local_finding()};
  before.findings[0].remedy = Remedy{"retile", false, "Put each survivor where it belongs."};
  before.findings[0].diagnoses.emplace_back(PartlyLost{});
  before.findings[1].subjects = {"optimizer.state.v.exp_avg"};
  before.findings[1].remedy = before.findings[0].remedy;
  before.findings[1].diagnoses.emplace_back(PartlyLost{});
  CheckReport there = before;
  there.findings[0].remedy.reset();  // the values contradict it
  there.findings[0].evidence.emplace_back("values_say_otherwise", std::vector<std::string>{"rows"});
  const AnsweringHost host(check_to_json(there));
  auto read = verbs::check_over_ssh(options_over_ssh(), &before);
  REQUIRE(read.has_value());
  REQUIRE(read->findings.size() == 2);
  CHECK(read->findings[0].diagnoses.empty());
  CHECK(read->findings[1].diagnoses.size() == 1);
}

TEST_CASE("make_plan: a remedy without its diagnosis names the machine that can plan it") {
  auto opened = open_checkpoint(test::fixture_cases("healthy_fsdp").front() + "/ckpt");
  REQUIRE(opened.has_value());
  CheckReport report;
  report.lacks_diagnoses = true;
  report.findings = {local_finding()};
  report.findings[0].remedy = Remedy{"retile", false, "Put each survivor where it belongs."};
  const auto plan = make_plan(**opened, report, {});
  REQUIRE(plan.has_value());
  REQUIRE(plan->undecided.size() == 1);
  const auto* why = find_evidence<std::string>(plan->undecided[0], "not_repaired_because");
  REQUIRE(why != nullptr);
  CHECK(why->find("run `shardwright plan` over there") != std::string::npos);
}

TEST_CASE("can_run_over_ssh: only this version over there") {
  {
    const OtherHost host(test::answer_of_version(std::string(kJsonSchema), kProgramVersion));
    CHECK(verbs::can_run_over_ssh(options_over_ssh()));
    VerbOptions options = options_over_ssh();
    options.spec = "/here/spec.json";
    CHECK_FALSE(verbs::can_run_over_ssh(options));
  }
  const OtherHost older(test::answer_of_version(std::string(kJsonSchema), "0.0.9"));
  CHECK_FALSE(verbs::can_run_over_ssh(options_over_ssh()));
}

TEST_CASE("hash_over_ssh: what is not the text of hash is refused") {
  const std::string hash(32, 'a'), dashes(32, '-');
  const std::string text = hash + "  w  float32 [2]\n" + dashes + "  v  float32 [2]: cut off\n" +
                           dashes + "  total of 2 tensors\n";
  const auto answered = [](const std::string& answer) {
    const AnsweringHost host(answer);
    return verbs::hash_over_ssh(options_over_ssh()).value_or("refused");
  };
  CHECK(answered(text) == text);
  CHECK(answered("Welcome to the cluster\n" + text) == "refused");
  CHECK(answered(hash + "  w  float32 [2]\n") == "refused");
  CHECK(answered(text.substr(0, text.size() - 1)) == "refused");
  CHECK(answered(hash + " total of 0 tensors\n") == "refused");
}

TEST_CASE(
    "numbers_over_ssh: counts are held against the tensor, and the schema and code are read") {
  auto opened = open_checkpoint(test::fixture_cases("healthy_fsdp").front() + "/ckpt");
  REQUIRE(opened.has_value());
  const Checkpoint& checkpoint = **opened;
  const std::vector<TensorId> floats = verbs::float_tensors(checkpoint);
  REQUIRE_FALSE(floats.empty());
  const TensorId tensor = floats[0];
  const auto answer = [&](std::string_view schema) {
    return "{\"schema\": \"" + std::string(schema) + "\", \"tensors\": {\"" +
           std::string(checkpoint.fqn(tensor)) +
           "\": {\"elements\": 18446744073709551615, \"nan\": 1, \"inf\": 0, \"zero\": "
           "18446744073709551615}}}";
  };
  const auto volume = static_cast<std::uint64_t>(shw::volume(checkpoint.shape(tensor)).value());
  {
    const AnsweringHost host(answer(kJsonSchema));
    auto numbers = verbs::numbers_over_ssh(checkpoint, options_over_ssh());
    REQUIRE(numbers.has_value());
    CHECK(numbers->tensors[index_of(tensor)].elements == volume);
    CHECK(numbers->tensors[index_of(tensor)].zero == volume - 1);
    CHECK(numbers->not_whole == floats.size() - 1);
  }
  {
    const AnsweringHost host(answer("shardwright/9"));
    CHECK_FALSE(verbs::numbers_over_ssh(checkpoint, options_over_ssh()).has_value());
  }
  const AnsweringHost host(answer(kJsonSchema), 4);
  CHECK_FALSE(verbs::numbers_over_ssh(checkpoint, options_over_ssh()).has_value());
}
