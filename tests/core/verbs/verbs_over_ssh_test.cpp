// With a stand-in for ssh that runs the command on this machine.
#include "core/verbs/verbs_over_ssh.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>

#include "core/base/version.h"
#include "core/fixtures.h"
#include "core/formats/open.h"
#include "core/io/remote/other_host.h"
#include "core/model/evidence.h"
#include "core/report/difference_report.h"
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
  finding.cause = "one rank's shard was saved as the whole tensor";
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
  CHECK(why->find("run `shardwright plan` on that machine") != std::string::npos);
}

TEST_CASE("ssh_use: only this version and commit over there, or a sentence that says why not") {
  {
    const OtherHost host(test::answer_of_version(std::string(kJsonSchema), kProgramVersion));
    CHECK(verbs::ssh_use(options_over_ssh()).is_possible);
    VerbOptions options = options_over_ssh();
    options.spec = "/here/spec.json";
    CHECK_FALSE(verbs::ssh_use(options).is_possible);
    CHECK(verbs::ssh_use(options).why_not ==
          "The spec or the reference is not a file on that machine.");
    options.checkpoint = "/runs/step_1";
    CHECK(verbs::ssh_use(options).why_not.empty());
  }
  {
    const OtherHost host(
        test::answer_of_version(std::string(kJsonSchema), kProgramVersion, kProgramCommit));
    CHECK(verbs::ssh_use(options_over_ssh()).is_possible);
  }
  if (std::string_view(kProgramCommit) != "unknown") {
    const OtherHost host(
        test::answer_of_version(std::string(kJsonSchema), kProgramVersion, "000000000000"));
    const verbs::SshUse use = verbs::ssh_use(options_over_ssh());
    CHECK_FALSE(use.is_possible);
    CHECK(use.why_not ==
          "Shardwright on that machine is commit 000000000000, but this one is commit " +
              std::string(kProgramCommit) + ".");
  }
  const OtherHost older(test::answer_of_version(std::string(kJsonSchema), "0.0.9"));
  CHECK_FALSE(verbs::ssh_use(options_over_ssh()).is_possible);
}

TEST_CASE("verify_over_ssh: the verdict is read, and an error over there is that error") {
  VerifyReport report;
  report.outcome = VerifyReport::Outcome::kBroken;
  report.reasons = {"w: 1 of 4 hashes differs"};
  report.tensors = 3;
  report.kept = 12;
  {
    const AnsweringHost host(verify_to_json(report), 1);
    auto read = verbs::verify_over_ssh("ssh://host/runs/step_1-repaired");
    REQUIRE(read.has_value());
    CHECK(verify_to_json(*read) == verify_to_json(report));
  }
  const AnsweringHost host("{\"schema\": \"" + std::string(kJsonSchema) +
                               "\", \"error\": {\"message\": \"no such folder\"}}",
                           4);
  auto read = verbs::verify_over_ssh("ssh://host/runs/step_1-repaired");
  REQUIRE_FALSE(read.has_value());
  CHECK(read.error().message == "no such folder");
}

namespace {

TensorDifference different(const char* fqn, DifferenceKind kind, Dtype dtype) {
  TensorDifference tensor{fqn, kind};
  tensor.a = tensor.b = TensorSide{dtype, {4, 2}, 2};
  return tensor;
}

ValueDifference compared_values(std::string a, std::string b) {
  ValueDifference values;
  values.compared = 8;
  values.elements.differing = 3;
  values.elements.bits_only = 1;
  values.first = FirstDifference{{1, 0}, std::move(a), std::move(b)};
  return values;
}

// A difference with each kind of tensor and of value, in the order of kinds.
CheckpointDifference difference_of_every_kind() {
  CheckpointDifference all;
  all.verdict = EqualityVerdict::kDifferent;
  all.data = true;
  all.tensors_a = 9;
  all.tensors_b = 8;
  all.in_both = 6;
  all.compared = 5;
  all.same = 1;
  all.doubts = {"One tensor could not be read."};
  all.unjudged = {{"values of w", "bytes that can be read"}};
  const auto add = [&](TensorDifference tensor) { all.tensors.push_back(std::move(tensor)); };

  TensorDifference floats = different("floats", DifferenceKind::kValues, Dtype::kFloat32);
  floats.values = compared_values("0.1", "-2.5e-08");
  floats.values->elements.max_abs = 0.30000001192092896;
  floats.values->elements.max_ulp = 7;
  floats.values->cosine = 0.9999;
  floats.values->unread = 2;
  add(floats);
  TensorDifference wholes = different("wholes", DifferenceKind::kValues, Dtype::kInt64);
  wholes.values = compared_values("9223372036854775807", "-9223372036854775808");
  wholes.values->elements.max_whole = 18446744073709551615U;
  wholes.retiled = true;
  add(wholes);
  TensorDifference no_numbers = different("no_numbers", DifferenceKind::kValues, Dtype::kBfloat16);
  no_numbers.values = compared_values("NaN", "-Infinity");
  no_numbers.values->elements.nan = 1;
  no_numbers.values->elements.max_abs = std::numeric_limits<double>::infinity();
  add(no_numbers);
  TensorDifference cast = different("cast", DifferenceKind::kDtype, Dtype::kFloat32);
  cast.b->dtype = Dtype::kInt32;
  cast.values = compared_values("1.5", "1");
  cast.values->by_value = true;
  cast.values->elements.max_abs = 0.5;
  add(cast);
  TensorDifference reshaped = different("reshaped", DifferenceKind::kReshaped, Dtype::kFloat32);
  reshaped.b->shape = {8};
  reshaped.same_elements = true;
  add(reshaped);
  TensorDifference renamed = different("old_name", DifferenceKind::kRenamed, Dtype::kFloat32);
  renamed.other = "new_name";
  add(renamed);
  TensorDifference missing = different("missing", DifferenceKind::kMissing, Dtype::kFloat32);
  missing.b.reset();
  add(missing);
  TensorDifference unread = different("unread", DifferenceKind::kUndecided, Dtype::kFloat32);
  unread.a->missing = 4;
  unread.b->filled = 2;
  unread.why = {"the file is truncated"};
  unread.error = Error{ErrorKind::kDamaged, "is cut off", {"b/__0_0.distcp", 4096, "unread"}};
  unread.error_in = 'b';
  add(unread);
  std::ranges::stable_sort(all.tensors, {}, &TensorDifference::kind);
  all.entries = {{"step", DifferenceKind::kValues, "1", "2"},
                 {"rng", DifferenceKind::kUndecided, "", "", "it is pickled"}};
  std::ranges::stable_sort(all.entries, {}, &EntryDifference::kind);
  return all;
}

}  // namespace

TEST_CASE("diff_over_ssh: a difference of every kind is read as it was written") {
  const CheckpointDifference made = difference_of_every_kind();
  const std::string text = difference_to_json(made, {"a", "b"});
  const AnsweringHost host(text, 1);
  auto read = verbs::diff_over_ssh("ssh://host/a", "ssh://host/b");
  REQUIRE(read.has_value());
  CHECK(difference_to_json(*read, {"a", "b"}) == text);
  REQUIRE(read->tensors.size() == made.tensors.size());
  for (std::size_t i = 0; i < made.tensors.size(); ++i) {
    CAPTURE(made.tensors[i].fqn);
    CHECK(read->tensors[i].fqn == made.tensors[i].fqn);
    const auto &written = made.tensors[i].values, &values = read->tensors[i].values;
    REQUIRE(values.has_value() == written.has_value());
    if (!written) continue;
    CHECK(values->first->a == written->first->a);
    CHECK(values->first->b == written->first->b);
  }
}

TEST_CASE("plan_over_ssh: a plan that was made over there is checked against the open checkpoint") {
  const std::string folder = test::fixture_cases("s1_placement_not_transposed").front();
  VerbOptions options;
  options.checkpoint = folder + "/ckpt";
  options.spec = folder + "/spec.json";
  auto opened = verbs::open(options);
  REQUIRE(opened.has_value());
  auto report = verbs::check(*opened, Depth::kMetadata);
  REQUIRE(report.has_value());
  auto plan = verbs::plan(*opened, *report, "");
  REQUIRE(plan.has_value());
  REQUIRE_FALSE(plan->empty());
  const std::string text = plan_to_json(*opened->checkpoint, *plan);
  {
    const AnsweringHost host(text);
    auto read = verbs::plan_over_ssh(*opened, options_over_ssh());
    REQUIRE(read.has_value());
    CHECK(plan_to_json(*opened->checkpoint, *read) == text);
  }
  const auto refusal = [&](const std::string& answer) {
    const AnsweringHost host(answer);
    auto read = verbs::plan_over_ssh(*opened, options_over_ssh());
    REQUIRE_FALSE(read.has_value());
    return read.error().message;
  };
  const std::string schema = "{\"schema\": \"" + std::string(kJsonSchema) + "\"";
  CHECK_FALSE(refusal(schema + "}").empty());
  CHECK(refusal(schema + ", \"error\": {\"message\": \"no such folder\"}}") == "no such folder");
  CHECK(refusal(text.substr(0, text.size() / 2)) == "is not an answer of `plan --json`");
  const AnsweringHost host(text);
  VerbOptions filled = options_over_ssh();
  filled.fill = "from:ssh://host/runs/step_0";  // whose path there would be opened here
  CHECK_FALSE(verbs::plan_over_ssh(*opened, filled).has_value());
}

TEST_CASE("verify_over_ssh: unknown keys take no memory, and too many reasons are refused") {
  VerifyReport report;
  report.reasons = std::vector<std::string>(200'000, "r");
  {
    const AnsweringHost host(verify_to_json(report));
    CHECK_FALSE(verbs::verify_over_ssh("ssh://host/r").has_value());
  }
  report.reasons.clear();
  std::string text = verify_to_json(report);
  std::string zeros = "0";
  for (int i = 0; i < 200'000; ++i) zeros += ",0";
  text.insert(text.find('{') + 1, "\"later\": [" + zeros + "],");
  const AnsweringHost host(text);
  CHECK(verbs::verify_over_ssh("ssh://host/r").has_value());
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
    CHECK(numbers->partly_read_tensors == floats.size() - 1);
  }
  {
    // What is not read takes no memory; what is read is bounded.
    std::string zeros = "0";
    for (int i = 0; i < 100'000; ++i) zeros += ",0";
    const auto with_zeros_in = [&](const std::string& key) {
      std::string text = answer(kJsonSchema);
      text.insert(text.find("\"elements\""), "\"" + key + "\": [" + zeros + "], ");
      const AnsweringHost host(text);
      return verbs::numbers_over_ssh(checkpoint, options_over_ssh());
    };
    auto numbers = with_zeros_in("histogram");
    REQUIRE(numbers.has_value());
    CHECK(numbers->tensors[index_of(tensor)].elements == volume);
    CHECK_FALSE(with_zeros_in("unread").has_value());
  }
  {
    const AnsweringHost host(answer("shardwright/9"));
    CHECK_FALSE(verbs::numbers_over_ssh(checkpoint, options_over_ssh()).has_value());
  }
  const AnsweringHost host(answer(kJsonSchema), 4);
  CHECK_FALSE(verbs::numbers_over_ssh(checkpoint, options_over_ssh()).has_value());
}
