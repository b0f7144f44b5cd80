#include "core/rules/policy.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/formats/common/codecs.h"
#include "core/io/source.h"
#include "core/model/builder.h"

using namespace shw;

namespace {

const Format kHeldFormat{.name = "held", .title = "held", .codec = &kRawCodec};

// Tensors of two elements, one tile each, in one file.
struct LoadedTensor {
  std::string fqn;
  float value = 1;
  bool requires_grad = false;
  std::int64_t shift = 0;  // of the record's place, beyond the end of the file
  Dtype dtype = Dtype::kFloat32;
};

std::shared_ptr<const Checkpoint> held(const std::vector<LoadedTensor>& tensors,
                                       std::optional<Finding> opening = {}, bool folder = true) {
  CheckpointBuilder builder;
  builder.set_format(kHeldFormat);
  Bytes file;
  for (const LoadedTensor& tensor : tensors) {
    const float both[] = {tensor.value, 0};
    auto bytes = std::as_bytes(std::span(both));
    file.insert(file.end(), bytes.begin(), bytes.end());
  }
  if (folder) builder.set_directory(memory_directory("memory", {{"data", std::move(file)}}));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    builder.add_tensor(tensors[i].fqn, tensors[i].dtype, Extents{2}, tensors[i].requires_grad);
    builder.add_chunk(
        Extents{0}, Extents{2},
        {builder.file("data"), static_cast<std::int64_t>(i) * 8 + tensors[i].shift, 8});
  }
  if (opening) builder.add_finding(std::move(*opening));
  return builder.finish();
}

Finding did_not_open() {
  Finding finding;
  finding.rule = "bad-record";
  finding.subjects = {"lost.safetensors"};
  return finding;
}

PolicyAnswer judged(const Checkpoint& checkpoint, const std::string& require, bool data = true) {
  auto answers = evaluate_policies(checkpoint, std::vector{require}, data, nullptr);
  REQUIRE(answers);
  REQUIRE(answers->size() == 1);
  CHECK(answers->front().require == require);
  return answers->front();
}

// Parameters w0, w1, ... with these kinds of states each.
std::vector<LoadedTensor> model(const std::vector<std::vector<std::string>>& kinds,
                                bool trained = true) {
  std::vector<LoadedTensor> tensors;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    std::string name = "w" + std::to_string(i) + ".weight";
    tensors.push_back({"model." + name, 1, trained});
    for (const std::string& kind : kinds[i])
      tensors.push_back({"optimizer.state.model." + name + "." + kind});
  }
  return tensors;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("a policy over a file that did not open is not met") {
  std::vector<LoadedTensor> whole = model({{"exp_avg"}, {"exp_avg"}});
  for (const char* require : {"coverage", "finite", "optimizer-complete"}) {
    CAPTURE(require);
    CHECK(judged(*held(whole), require).verdict == PolicyVerdict::kMet);
    PolicyAnswer open = judged(*held(whole, did_not_open()), require);
    CHECK(open.verdict == PolicyVerdict::kUndecided);
    CHECK(open.subjects == Names{"lost.safetensors"});
    Finding set_right = did_not_open();
    set_right.severity = Severity::kWarning;
    CHECK(judged(*held(whole, set_right), require).verdict == PolicyVerdict::kMet);
    Finding passed_over = did_not_open();
    passed_over.rule = "not-looked-at";
    passed_over.severity = Severity::kInfo;
    CHECK(judged(*held(whole, passed_over), require).verdict == PolicyVerdict::kUndecided);
    CHECK(judged(*held(whole, {}, false), require).verdict == PolicyVerdict::kUndecided);
  }
}

TEST_CASE("what is broken stays broken next to a file that did not open") {
  float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(judged(*held({{"w", nan}}, did_not_open()), "finite").verdict == PolicyVerdict::kBroken);
  CHECK(judged(*held({{"w", 1, false, 8}}, did_not_open()), "coverage").verdict ==
        PolicyVerdict::kBroken);
}

TEST_CASE("finite is met by values that were read and by nothing else") {
  CHECK(judged(*held({{"w"}}), "finite").verdict == PolicyVerdict::kMet);
  CHECK(judged(*held({{"w"}}), "finite", false).verdict == PolicyVerdict::kUndecided);
  CHECK(judged(*held({}), "finite").verdict == PolicyVerdict::kUndecided);
  CHECK(judged(*held({}), "coverage").verdict == PolicyVerdict::kUndecided);
  PolicyAnswer gone = judged(*held({{"w"}, {"v", 1, false, 4}}), "finite");
  CHECK(gone.verdict == PolicyVerdict::kUndecided);
  CHECK(gone.subjects == Names{"v"});
  float infinite = -std::numeric_limits<float>::infinity();
  PolicyAnswer broken = judged(*held({{"w"}, {"v", infinite}}), "finite");
  CHECK(broken.verdict == PolicyVerdict::kBroken);
  CHECK(broken.subjects == Names{"v"});
}

TEST_CASE("an optimizer is complete where each parameter has what the others have") {
  auto answer = [](const std::vector<LoadedTensor>& tensors) {
    return judged(*held(tensors), "optimizer-complete", false);
  };
  Names adam{"exp_avg", "exp_avg_sq"};
  CHECK(answer(model({adam, adam, adam})).verdict == PolicyVerdict::kMet);
  CHECK(answer(model({adam, adam, adam}, false)).verdict == PolicyVerdict::kMet);
  CHECK(answer({{"w"}}).verdict == PolicyVerdict::kBroken);
  // One parameter lacks a state that most have.
  PolicyAnswer one = answer(model({adam, adam, {"exp_avg"}}));
  CHECK(one.verdict == PolicyVerdict::kBroken);
  CHECK(one.subjects == Names{"model.w2.weight"});
  // States that half of the parameters or fewer have may be the rest of a loss.
  for (const auto& kinds : {std::vector<Names>{adam, {"exp_avg"}},
                            std::vector<Names>{adam, {"exp_avg"}, {"exp_avg"}, {"exp_avg"}},
                            std::vector<Names>{adam, {"momentum_buffer"}}}) {
    CHECK(answer(model(kinds)).verdict == PolicyVerdict::kUndecided);
  }
}

TEST_CASE("a parameter without any state breaks it where it is trained and else leaves it open") {
  auto answer = [](const std::vector<LoadedTensor>& tensors) {
    return judged(*held(tensors), "optimizer-complete", false);
  };
  Names adam{"exp_avg", "exp_avg_sq"};
  PolicyAnswer trained = answer(model({adam, {}, {}, adam}));
  CHECK(trained.verdict == PolicyVerdict::kBroken);
  CHECK(trained.subjects == Names{"model.w1.weight", "model.w2.weight"});
  PolicyAnswer unknown = answer(model({adam, {}, {}, adam}, false));
  CHECK(unknown.verdict == PolicyVerdict::kUndecided);
  CHECK(unknown.subjects == Names{"model.w1.weight", "model.w2.weight"});
  // Frozen parameters next to trained ones, and tensors that no optimizer trains.
  std::vector<LoadedTensor> frozen = model({adam});
  frozen.push_back({"model.embed.weight"});
  CHECK(answer(frozen).verdict == PolicyVerdict::kMet);
  std::vector<LoadedTensor> counter = model({adam}, false);
  counter.push_back({"model.position_ids", 1, false, 0, Dtype::kInt32});
  CHECK(answer(counter).verdict == PolicyVerdict::kMet);
}

TEST_CASE("a state that is recorded and not there breaks it") {
  std::vector<LoadedTensor> tensors = model({{"exp_avg"}, {"exp_avg"}});
  tensors.back().shift = 64;
  PolicyAnswer gone = judged(*held(tensors), "optimizer-complete", false);
  CHECK(gone.verdict == PolicyVerdict::kBroken);
  CHECK(gone.subjects == Names{"optimizer.state.model.w1.weight.exp_avg"});
}

TEST_CASE("finite is open next to an object whose contents were not read") {
  auto with_object = [](const std::string& opcodes) {
    CheckpointBuilder builder;
    builder.set_format(kHeldFormat);
    builder.set_directory(memory_directory("memory", {{"data", Bytes(8)}}));
    builder.add_tensor("w", Dtype::kFloat32, Extents{2});
    builder.add_chunk(Extents{0}, Extents{2}, {builder.file("data"), 0, 8});
    builder.add_object({.fqn = "pair", .item = {}, .inlined = InlinedValue{opcodes, "a tensor"}});
    return builder.finish();
  };
  CHECK(judged(*with_object("K\x05"), "finite").verdict == PolicyVerdict::kMet);
  PolicyAnswer open = judged(*with_object(""), "finite");
  CHECK(open.verdict == PolicyVerdict::kUndecided);
  CHECK(open.subjects == Names{"pair"});
  CHECK(open.why == "1 object in whose contents there may be tensors");
}

TEST_CASE("finite is open next to an item of which nobody knows whether it holds tensors") {
  auto with_item = [](const std::string& pickle) {
    Bytes file(8);
    for (char byte : pickle) file.push_back(static_cast<std::byte>(byte));
    CheckpointBuilder builder;
    builder.set_format(kHeldFormat);
    builder.set_directory(memory_directory("memory", {{"data", std::move(file)}}));
    builder.add_tensor("w", Dtype::kFloat32, Extents{2});
    builder.add_chunk(Extents{0}, Extents{2}, {builder.file("data"), 0, 8});
    const ItemPlace item{builder.file("data"), 8, static_cast<std::int64_t>(pickle.size())};
    builder.add_object({.fqn = "extra", .item = item});
    return builder.finish();
  };
  CHECK(judged(*with_item("\x80\x02K\x05."), "finite").verdict == PolicyVerdict::kMet);
  for (const char* opaque : {"\x80\x02"
                             "cnumpy\nndarray\n)R.",
                             "no pickle"}) {
    PolicyAnswer open = judged(*with_item(opaque), "finite");
    CHECK(open.verdict == PolicyVerdict::kUndecided);
    CHECK(open.subjects == Names{"extra"});
  }
}
