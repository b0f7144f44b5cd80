// DTensors in a file of torch.save, and optimizer files next to the weights.
#include <doctest/doctest.h>

#include <algorithm>
#include <optional>

#include "core/formats/torch_file/torch_file_support.h"
#include "core/rules/check.h"
#include "core/rules/names/named_tensors.h"
#include "core/tensor/strided_copy.h"

using namespace shw;
using namespace shw::test;

namespace {

CheckReport checked(const Checkpoint& checkpoint) {
  auto report = check(checkpoint, {});
  REQUIRE(report.has_value());
  return std::move(*report);
}

const Finding* named(const CheckReport& report, std::string_view rule) {
  for (const Finding& finding : report.findings) {
    if (finding.rule == rule) return &finding;
  }
  return nullptr;
}

using Files = std::vector<std::pair<std::string, Bytes>>;

// A tensor of float32 in a storage of its own.
std::string float_tensor(const std::string& key, const Extents& sizes) {
  return tensor_call({.count = volume(sizes).value_or(0),
                      .sizes = sizes,
                      .strides = row_major_strides(sizes),
                      .key = key});
}

// {"state": {"0": {"exp_avg": ..., "exp_avg_sq": ...}, ...}} with states of those shapes.
Bytes optimizer_of(const std::vector<Extents>& shapes) {
  std::vector<std::pair<std::string, std::string>> states;
  std::vector<ZipRecord> records;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    std::vector<std::pair<std::string, std::string>> moments;
    for (const char* moment : {"exp_avg", "exp_avg_sq"}) {
      const std::string key = std::to_string(records.size());
      moments.emplace_back(moment, float_tensor(key, shapes[i]));
      records.push_back(
          {"m/data/" + key, std::string(static_cast<std::size_t>(4 * *volume(shapes[i])), '\1')});
    }
    states.emplace_back(std::to_string(i), pickled_dict(moments));
  }
  return to_bytes(state_dict_file(pickled_dict({{"state", pickled_dict(states)}}), records));
}

Bytes weights_of(const std::vector<Extents>& shapes) {
  std::vector<std::pair<std::string, std::string>> tensors;
  std::vector<ZipRecord> records;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const std::string key = std::to_string(i);
    tensors.emplace_back("w" + key, float_tensor(key, shapes[i]));
    records.push_back(
        {"m/data/" + key, std::string(static_cast<std::size_t>(4 * *volume(shapes[i])), '\2')});
  }
  return to_bytes(state_dict_file(pickled_dict(tensors), records));
}

CheckReport beside_weights(const std::vector<Extents>& states) {
  const std::vector<Extents> weights = {{16, 8}, {8, 8}, {8, 8}, {8, 16}, {8}};
  auto opened =
      open_checkpoint(memory_directory("ckpt", Files{{"pytorch_model.bin", weights_of(weights)},
                                                     {"optimizer.pt", optimizer_of(states)}}));
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  CHECK((*opened)->tensor_count() == weights.size());
  return checked(**opened);
}

}  // namespace

TEST_CASE("DTensors: the part of one rank is placed by its own mesh, and said to be a part") {
  for (const char* name : {"dtensors_rank0.bin", "dtensors_rank1.bin"}) {
    CAPTURE(name);
    const bool is_first = std::string_view(name).find('0') != std::string_view::npos;
    auto opened = open_checkpoint(torch_file_path(name));
    REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
    const Checkpoint& c = **opened;
    const TensorId a = *c.find("a"), b = *c.find("b");
    CHECK(same(c.shape(a), Extents{5, 3}));
    CHECK(same(c.offsets(c.chunks(a)[0]), Extents{is_first ? 0 : 3, 0}));
    CHECK(same(c.sizes(c.chunks(a)[0]), Extents{is_first ? 3 : 2, 3}));
    CHECK(same(c.shape(b), Extents{2, 4}));
    CHECK(same(c.offsets(c.chunks(b)[0]), Extents{0, is_first ? 0 : 2}));
    const CheckReport report = checked(c);
    const Finding* finding = named(report, "local-saved-as-global");
    REQUIRE(finding != nullptr);
    CHECK(finding->severity == Severity::kError);
    CHECK(finding->subjects == std::vector<std::string>{"a", "b"});
    CHECK(finding->cause.find(is_first ? "rank 0 of 2" : "rank 1 of 2") != std::string::npos);
    // Findings that it explains become infos.
    const Finding* gap = named(report, "coverage-gap");
    REQUIRE(gap != nullptr);
    CHECK(gap->severity == Severity::kInfo);
  }
}

TEST_CASE("optimizer next to weights: states of whole weights raise nothing and are not checked") {
  const CheckReport report = beside_weights({{16, 8}, {8, 8}, {8, 8}, {8, 16}, {8}});
  CHECK(report.findings.empty());
  CHECK(std::any_of(report.unjudged.begin(), report.unjudged.end(), [](const Unjudged& one) {
    return one.what.find("optimizer.pt") != std::string::npos;
  }));
}

TEST_CASE("optimizer next to weights: states of one tensor-parallel rank are said") {
  const CheckReport report = beside_weights({{8, 8}, {4, 8}, {4, 8}, {8, 8}, {8}});
  const Finding* finding = named(report, "local-saved-as-global");
  REQUIRE(finding != nullptr);
  CHECK(finding->severity == Severity::kError);
  CHECK(finding->subjects == std::vector<std::string>{"optimizer.pt"});
  CHECK(finding->cause.find("1/2 of their weights") != std::string::npos);
}

TEST_CASE("optimizer next to weights: flat rows of one rank are said, of all ranks they are not") {
  // 16 x 8 + 2 x 8 x 8 + 8 x 16 + 8 = 392 elements, in two rows.
  const CheckReport half = beside_weights({{100}, {96}});
  const Finding* finding = named(half, "local-saved-as-global");
  REQUIRE(finding != nullptr);
  CHECK(finding->cause.find("1/2 of the 392") != std::string::npos);
  CHECK(beside_weights({{200}, {192}}).findings.empty());
  CHECK(beside_weights({{8}}).findings.empty());  // a bias; all else is frozen
  // Rows of each weight.
  const CheckReport quarter = beside_weights({{32}, {16}, {16}, {32}, {2}});
  REQUIRE(named(quarter, "local-saved-as-global") != nullptr);
}

TEST_CASE("optimizer next to weights: states of few weights or of other shapes say nothing") {
  for (const std::vector<Extents>& states :
       {std::vector<Extents>{{4, 8}, {8, 4}},                          // of adapters
        std::vector<Extents>{{16}, {8}, {8}, {8}, {8}},                // factored
        std::vector<Extents>{{17, 8}, {8, 8}, {8, 8}, {8, 16}, {8}}})  // of another model
    CHECK(beside_weights(states).findings.empty());
}

TEST_CASE("optimizer next to weights: one that is cut short or empty is reported") {
  const Bytes optimizer = optimizer_of({{16, 8}, {8, 8}, {8, 8}, {8, 16}, {8}});
  for (const std::size_t length : {std::size_t{0}, optimizer.size() / 2}) {
    Bytes cut(optimizer.begin(), optimizer.begin() + static_cast<std::ptrdiff_t>(length));
    auto opened = open_checkpoint(memory_directory(
        "ckpt", Files{{"pytorch_model.bin", weights_of({{16, 8}, {8, 8}, {8, 8}, {8, 16}, {8}})},
                      {"optimizer.pt", std::move(cut)}}));
    REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
    auto report = check(**opened, {});
    REQUIRE(report.has_value());
    const Finding* finding = named(*report, "side-file");
    REQUIRE(finding != nullptr);
    CHECK(finding->severity == Severity::kError);
    CHECK(finding->subjects == std::vector<std::string>{"optimizer.pt"});
  }
}

TEST_CASE("files next to weights: another model's file that is cut short is a warning") {
  const Bytes whole = weights_of({{16, 8}, {8, 8}});
  const Bytes tensors = tensor_file({{"w", {"F32", {4}, 0.5F}}});
  const auto side_finding_with = [&](const std::string& name, Bytes content) {
    auto opened = open_checkpoint(memory_directory(
        "ckpt", Files{{"model.safetensors", tensors}, {name, std::move(content)}}));
    REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
    const CheckReport report = checked(**opened);
    const Finding* finding = named(report, "side-file");
    return finding == nullptr ? std::optional<Severity>() : finding->severity;
  };
  const auto cut = [](Bytes bytes, std::size_t length) {
    bytes.resize(length);
    return bytes;
  };
  CHECK_FALSE(side_finding_with("vae.pth", whole));
  CHECK(side_finding_with("vae.pth", cut(whole, whole.size() - 1)) == Severity::kWarning);
  CHECK(side_finding_with("vae.pth", cut(whole, whole.size() / 2)) == Severity::kWarning);
  // Other programs have files of such names too, which need not begin as torch's do.
  CHECK_FALSE(side_finding_with("model.bin", to_bytes(std::string(64, '\0'))));
}

TEST_CASE("several steps of torch.save: an older one that is cut short is a warning") {
  const Bytes whole = weights_of({{16, 8}, {8, 8}});
  const Bytes cut(whole.begin(), whole.begin() + 200);
  const auto opened_of = [&](const std::string& kind, int damaged) {
    Files files;
    for (int step = 1; step <= 3; ++step)
      files.emplace_back("epoch_" + std::to_string(step) + kind, step == damaged ? cut : whole);
    return open_checkpoint(memory_directory("ckpt", std::move(files)));
  };
  for (const std::string kind : {".pth", ".ckpt"}) {
    CAPTURE(kind);
    for (const int damaged : {0, 1, 2}) {
      CAPTURE(damaged);
      const auto opened = opened_of(kind, damaged);
      REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
      const CheckReport report = checked(**opened);
      CHECK((*opened)->tensor_count() == 2);
      Severity most = Severity::kInfo;
      for (const Finding& finding : report.findings) most = std::max(most, finding.severity);
      CHECK(most == (damaged == 0 ? Severity::kInfo : Severity::kWarning));
    }
    // The newest one is what a run goes on from.
    const auto opened = opened_of(kind, 3);
    CHECK_FALSE(opened.has_value());
  }
}

TEST_CASE("files next to weights: an older step that is cut short is a warning") {
  const Bytes step = tensor_file({{"w", {"F32", {4}, 0.5F}}});
  for (const std::size_t left : {step.size(), step.size() - 1, step.size() / 2}) {
    CAPTURE(left);
    auto opened = open_checkpoint(memory_directory(
        "ckpt", Files{{"lora.safetensors", step},
                      {"lora-000001.safetensors",
                       Bytes(step.begin(), step.begin() + static_cast<std::ptrdiff_t>(left))}}));
    REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
    const CheckReport report = checked(**opened);
    const bool is_told =
        std::any_of(report.findings.begin(), report.findings.end(),
                    [](const Finding& finding) { return finding.severity > Severity::kInfo; });
    CHECK(is_told == (left < step.size()));
  }
}

TEST_CASE("optimizer next to weights: what is no pickle in its place is reported") {
  for (const std::string& content : {std::string(4096, '\0'), std::string("<!DOCTYPE html><html>"),
                                     std::string("version https://git-lfs.github.com/spec/v1\n"),
                                     std::string("hello\n"), std::string("\x93NUMPY\1")}) {
    CAPTURE(content.substr(0, 20));
    auto opened = open_checkpoint(
        memory_directory("ckpt", Files{{"pytorch_model.bin", weights_of({{16, 8}, {8, 8}})},
                                       {"optimizer.pt", to_bytes(content)}}));
    REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
    const CheckReport report = checked(**opened);
    const Finding* finding = named(report, "side-file");
    REQUIRE(finding != nullptr);
    CHECK(finding->severity == Severity::kError);
  }
}

TEST_CASE("files next to weights: a compressed pickle of another library raises nothing") {
  auto opened = open_checkpoint(
      memory_directory("ckpt", Files{{"pytorch_model.bin", weights_of({{16, 8}, {8, 8}})},
                                     {"scaler.pkl", to_bytes("\x78\x9c" + std::string(40, 'a'))}}));
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  CHECK(named(checked(**opened), "side-file") == nullptr);
}

TEST_CASE("optimizer next to weights: Adam's parameters without a state are reported") {
  // Two parameters in the group, but only one has a state.
  const std::string group =
      pickled_dict({{"betas", "G?\xec\xcc\xcc\xcc\xcc\xcc\xcdG?\xef\xf7\xce\xd9\x16\x87+\x86"},
                    {"params", "](K\1K\2e"}});
  for (const bool both : {true, false}) {
    std::string states = "}(";
    std::vector<ZipRecord> records;
    for (int i = 0; i < (both ? 2 : 1); ++i) {
      states += std::string("K") + static_cast<char>(i + 1) +
                pickled_dict({{"exp_avg", float_tensor(std::to_string(2 * i), {2, 2})},
                              {"exp_avg_sq", float_tensor(std::to_string(2 * i + 1), {2, 2})}});
      for (int k : {2 * i, 2 * i + 1})
        records.push_back({"m/data/" + std::to_string(k), std::string(16, '\1')});
    }
    auto opened = open_checkpoint(memory_directory(
        "ckpt",
        Files{{"pytorch_model.bin", weights_of({{2, 2}, {2, 2}})},
              {"optimizer.pt",
               to_bytes(state_dict_file(
                   pickled_dict({{"state", states + "u"}, {"param_groups", "](" + group + "e"}}),
                   records))}}));
    REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
    const CheckReport report = checked(**opened);
    CHECK((named(report, "side-file") == nullptr) == both);
  }
}

TEST_CASE("optimizer next to weights: two moments of different shapes are reported") {
  for (const bool is_flat : {false, true}) {
    const std::string state =
        pickled_dict({{"exp_avg", is_flat ? float_tensor("0", {4}) : float_tensor("0", {2, 2})},
                      {"exp_avg_sq", float_tensor("1", {2, 2})}});
    auto opened = open_checkpoint(memory_directory(
        "ckpt", Files{{"pytorch_model.bin", weights_of({{2, 2}})},
                      {"optimizer.pt",
                       to_bytes(state_dict_file(pickled_dict({{"state", "}(K\1" + state + "u"}}),
                                                {{"m/data/0", std::string(16, '\1')},
                                                 {"m/data/1", std::string(16, '\1')}}))}}));
    REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
    const CheckReport report = checked(**opened);
    CHECK((named(report, "side-file") != nullptr) == is_flat);
  }
}

TEST_CASE("optimizer next to weights: Adam without a state is a warning once steps were made") {
  const std::string group =
      pickled_dict({{"betas", "G?\xec\xcc\xcc\xcc\xcc\xcc\xcdG?\xef\xf7\xce\xd9\x16\x87+\x86"},
                    {"params", "](K\2K\1e"}});
  const Bytes optimizer = to_bytes(
      state_dict_file(pickled_dict({{"state", "}"}, {"param_groups", "](" + group + "e"}}), {}));
  for (const int step : {0, 40}) {
    auto opened = open_checkpoint(memory_directory(
        "ckpt", Files{{"pytorch_model.bin", weights_of({{2, 2}, {2}})},
                      {"optimizer.pt", optimizer},
                      {"scheduler.pt", optimizer},
                      {"trainer_state.json",
                       to_bytes("{\"global_step\": " + std::to_string(step) + "}")}}));
    REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
    const CheckReport report = checked(**opened);
    const Finding* finding = named(report, "side-file");
    REQUIRE(finding != nullptr);
    CHECK(finding->severity == (step == 0 ? Severity::kInfo : Severity::kWarning));
  }
}

TEST_CASE("optimizer next to weights: matrices of which no weight has the shape are reported") {
  const CheckReport report = beside_weights({{18, 10}, {10, 10}, {10, 10}, {10, 18}, {10}});
  const Finding* finding = named(report, "side-file");
  REQUIRE(finding != nullptr);
  CHECK(finding->severity == Severity::kWarning);
}

TEST_CASE(
    "a folder of Trainer: an optimizer without its scheduler is not loaded, and that is said") {
  const std::vector<Extents> shapes = {{16, 8}, {8, 8}, {8, 8}, {8, 16}, {8}};
  const auto checked_with = [&](const std::vector<std::string>& beside) {
    Files files = {{"pytorch_model.bin", weights_of(shapes)},
                   {"trainer_state.json", to_bytes(R"({"global_step": 5})")}};
    for (const std::string& name : beside) files.emplace_back(name, optimizer_of(shapes));
    auto opened = open_checkpoint(memory_directory("ckpt", std::move(files)));
    REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
    return checked(**opened);
  };
  const auto severity = [&](const std::vector<std::string>& beside) -> std::optional<Severity> {
    const CheckReport report = checked_with(beside);
    for (const Finding& finding : report.findings) {
      if (finding.rule == "side-file" && finding.subjects.front() == "scheduler.pt")
        return finding.severity;
    }
    return std::nullopt;
  };
  CHECK_FALSE(severity({}).has_value());
  CHECK_FALSE(severity({"optimizer.pt", "scheduler.pt"}).has_value());
  CHECK(severity({"optimizer.pt"}) == Severity::kInfo);
  CHECK(severity({"optimizer.bin"}) == Severity::kInfo);
  CHECK(severity({"scheduler.pt"}) == Severity::kInfo);
}

TEST_CASE("a folder of a trainer: the model is what its training did not leave next to it") {
  const Bytes model = weights_of({{2, 2}});
  auto opened = open_checkpoint(memory_directory(
      "ckpt",
      Files{{"pytorch_model_fsdp.bin", model},
            {"optimizer.bin", optimizer_of({{2, 2}})},
            {"scheduler.bin", to_bytes(state_dict_file(pickled_dict({{"step", "K\1"}})))}}));
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  CHECK(names_of(**opened) == "w0 |");
  opened = open_checkpoint(memory_directory(
      "ckpt", Files{{"weights.pt", model}, {"optimizer.pt", optimizer_of({{2, 2}})}}));
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  CHECK(names_of(**opened) == "w0 |");
}

TEST_CASE("a folder of Trainer: a trainer_state.json of another step than the folder is reported") {
  const auto is_reported = [](const std::string& folder, const std::string& state) {
    auto opened = open_checkpoint(
        memory_directory(folder, Files{{"pytorch_model.bin", weights_of({{16, 8}, {8, 8}})},
                                       {"trainer_state.json", to_bytes(state)}}));
    REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
    const CheckReport report = checked(**opened);
    return std::any_of(report.findings.begin(), report.findings.end(), [](const Finding& finding) {
      return finding.rule == "side-file" &&
             finding.subjects == std::vector<std::string>{"trainer_state.json"};
    });
  };
  CHECK(is_reported("run/checkpoint-400", R"({"global_step": 300})"));
  CHECK_FALSE(is_reported("run/checkpoint-400", R"({"global_step": 400})"));
  CHECK_FALSE(is_reported("run/checkpoint-best", R"({"global_step": 300})"));
  CHECK_FALSE(is_reported("run/checkpoint-400", R"({"epoch": 3})"));
}
