// check and diff with a reference that has names of another program, on the pair of
// tests/core/maps.
#include "core/verbs/mapped_reference.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "core/base/little_endian.h"
#include "core/combine/shifted_norms.h"
#include "core/fixtures.h"
#include "core/formats/open.h"
#include "core/repair/plan/plan.h"
#include "core/repair/run/apply.h"
#include "core/temporary_folder.h"
#include "core/transform/target_view.h"
#include "core/verbs/mapped_view.h"
#include "core/verbs/verbs.h"

using namespace shw;
using namespace shw::test;

namespace {

const std::string kMappedPair = std::string(SHW_SOURCE_DIR) + "/tests/core/maps/data/llama3/";

std::shared_ptr<const Checkpoint> open_side(const std::string& path) {
  auto checkpoint = open_checkpoint(path);
  REQUIRE_MESSAGE(checkpoint.has_value(), checkpoint.error().message);
  return *checkpoint;
}

// The Hugging Face checkpoint with its file changed: `change` gets the whole file.
std::shared_ptr<const Checkpoint> changed_hf(const TemporaryFolder& folder,
                                             const std::function<void(std::string&)>& change) {
  std::filesystem::copy(kMappedPair + "hf", folder / "hf");
  const std::string file = folder / "hf/model.safetensors";
  std::string bytes;
  {
    std::ifstream in(file, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(in), {});
  }
  change(bytes);
  std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
  return open_side(folder / "hf");
}

// The range of a tensor's bytes in its file.
std::pair<std::size_t, std::size_t> place_of(const std::string& fqn) {
  const auto hf = open_side(kMappedPair + "hf");
  const auto tensor = hf->find(fqn);
  REQUIRE(tensor.has_value());
  const auto item = hf->item(hf->chunks(*tensor)[0]);
  REQUIRE(item.has_value());
  return {static_cast<std::size_t>(item->offset), static_cast<std::size_t>(item->length)};
}

CheckReport checked(const std::shared_ptr<const Checkpoint>& checkpoint,
                    const std::shared_ptr<const Checkpoint>& reference) {
  verbs::Opened opened;
  opened.checkpoint = checkpoint;
  opened.reference = reference;
  auto report = verbs::check(opened, std::nullopt, nullptr);
  REQUIRE_MESSAGE(report.has_value(), report.error().message);
  return std::move(*report);
}

CheckpointDifference differences(const std::shared_ptr<const Checkpoint>& a,
                                 const std::shared_ptr<const Checkpoint>& b) {
  auto difference = verbs::difference_through_map(a, b, {}, /*reads_values=*/true, nullptr);
  REQUIRE_MESSAGE(difference.has_value(), difference.error().message);
  REQUIRE(difference->has_value());
  return std::move(**difference);
}

std::vector<Finding> of_conversion(const CheckReport& report) {
  std::vector<Finding> out;
  for (const Finding& finding : report.findings) {
    if (finding.rule == "converted-wrongly" && finding.severity != Severity::kInfo)
      out.push_back(finding);
  }
  return out;
}

// Adds a tensor with the bytes of another one, shifted by `rows` rows, to a safetensors file.
void add_moved_copy(std::string& file, const std::string& fqn, const std::string& of,
                    std::size_t rows) {
  const auto length =
      static_cast<std::size_t>(load_little<std::uint64_t>(std::as_bytes(std::span(file))));
  auto header = nlohmann::json::parse(file.substr(8, length));
  const std::string data = file.substr(8 + length);
  auto entry = header.at(of);
  const std::size_t begin = entry["data_offsets"][0], end = entry["data_offsets"][1];
  const auto height = entry["shape"][0].get<std::size_t>();
  std::string bytes = data.substr(begin, end - begin);
  std::rotate(bytes.begin(),
              bytes.begin() + static_cast<std::ptrdiff_t>(bytes.size() / height * rows),
              bytes.end());
  entry["data_offsets"] = {data.size(), data.size() + bytes.size()};
  header[fqn] = entry;
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t size = text.size();
  std::string head(sizeof(size), '\0');
  std::memcpy(head.data(), &size, sizeof(size));
  file = head + text + data + bytes;
}

// Exchanges the bytes of two tensors of equal size.
void exchange(std::string& file, const std::string& one, const std::string& two) {
  const auto [at, size] = place_of(one);
  const auto [other, other_size] = place_of(two);
  REQUIRE(size == other_size);
  const std::string kept = file.substr(at, size);
  file.replace(at, size, file.substr(other, size));
  file.replace(other, size, kept);
}

// Written as the steps say.
std::shared_ptr<const Checkpoint> made_by_steps(const std::shared_ptr<const Checkpoint>& source,
                                                std::vector<Step> steps, const std::string& out) {
  Plan plan;
  plan.checkpoint = source->directory()->name();
  plan.steps = std::move(steps);
  plan.format = "safetensors";
  auto result = apply_plan(*source, plan, {out, false});
  REQUIRE_MESSAGE(result.has_value(), result.error().message);
  return open_side(out);
}

Patterns norms_of(const Checkpoint& checkpoint) {
  Patterns out;
  for (const TensorId tensor : checkpoint.tensors()) {
    if (is_norm_weight(checkpoint.fqn(tensor))) out.emplace_back(checkpoint.fqn(tensor));
  }
  return out;
}

// Applies the repairs of the findings; returns the check of the result.
CheckReport checked_when_repaired(const Checkpoint& checkpoint, const CheckReport& report,
                                  const std::shared_ptr<const Checkpoint>& reference,
                                  const std::string& out) {
  auto plan = make_plan(checkpoint, report, {std::nullopt, report.spec});
  REQUIRE_MESSAGE(plan.has_value(), plan.error().message);
  auto result = apply_plan(checkpoint, *plan, {out, false});
  REQUIRE_MESSAGE(result.has_value(), result.error().message);
  CHECK(verbs::verify(out).has_value());
  return checked(open_side(out), reference);
}

}  // namespace

TEST_CASE("reference of another program: tensors under one another's names are put right") {
  const auto megatron = open_side(kMappedPair + "megatron");
  const std::pair<const char*, const char*> pairs[] = {
      {"model.layers.0.mlp.gate_proj.weight", "model.layers.0.mlp.up_proj.weight"},
      {"model.layers.0.self_attn.k_proj.weight", "model.layers.0.self_attn.v_proj.weight"}};
  for (const auto& [one, two] : pairs) {
    CAPTURE(one);
    TemporaryFolder folder;
    const auto hf =
        changed_hf(folder, [&, a = one, b = two](std::string& file) { exchange(file, a, b); });
    const CheckReport report = checked(hf, megatron);
    const auto told = of_conversion(report);
    REQUIRE(told.size() == 1);
    REQUIRE(told[0].remedy.has_value());
    const CheckReport repaired = checked_when_repaired(*hf, report, megatron, folder / "out");
    CHECK(of_conversion(repaired).empty());
    CHECK(differences(open_side(folder / "out"), megatron).verdict == EqualityVerdict::kSame);
  }
}

TEST_CASE("reference of another program: what is lost is not offered a repair") {
  TemporaryFolder folder;
  const auto megatron = open_side(kMappedPair + "megatron");
  // up_proj has the content of gate_proj, so gate_proj is right and up_proj's content is missing.
  const auto hf = changed_hf(folder, [&](std::string& file) {
    const auto [at, size] = place_of("model.layers.0.mlp.gate_proj.weight");
    const auto [other, other_size] = place_of("model.layers.0.mlp.up_proj.weight");
    file.replace(other, other_size, file.substr(at, size));
  });
  const auto told = of_conversion(checked(hf, megatron));
  REQUIRE_FALSE(told.empty());
  for (const Finding& finding : told) CHECK_FALSE(finding.remedy.has_value());
}

TEST_CASE("reference of another program: equal weights are clean and the same") {
  const auto hf = open_side(kMappedPair + "hf"), megatron = open_side(kMappedPair + "megatron");
  CHECK(checked(megatron, hf).verdict == Verdict::kClean);
  CHECK(checked(hf, megatron).verdict == Verdict::kClean);
  CHECK(differences(hf, megatron).verdict == EqualityVerdict::kSame);
}

TEST_CASE("reference of another program: one that cannot be read leaves the check undecided") {
  TemporaryFolder folder;
  const auto hf = changed_hf(folder, [](std::string& file) { file.resize(file.size() - 2000); });
  const auto megatron = open_side(kMappedPair + "megatron");
  CHECK(checked(megatron, hf).verdict == Verdict::kUndecided);
}

TEST_CASE("reference of another program: a tensor without a row is named and nothing is the same") {
  TemporaryFolder folder;
  const auto hf = changed_hf(folder, [](std::string& file) {
    const auto length = load_little<std::uint64_t>(std::as_bytes(std::span(file).first(8)));
    const std::string entry =
        R"("model.strange.weight":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},)";
    file.insert(9, entry);
    const std::uint64_t longer = length + entry.size();
    for (std::size_t i = 0; i < 8; ++i) file[i] = static_cast<char>(longer >> (8 * i));
  });
  const auto megatron = open_side(kMappedPair + "megatron");
  for (const bool is_first : {true, false}) {
    const auto difference = is_first ? differences(hf, megatron) : differences(megatron, hf);
    CHECK(difference.verdict != EqualityVerdict::kSame);
    CHECK(std::any_of(difference.unjudged.begin(), difference.unjudged.end(), [](const auto& one) {
      return one.what.find("model.strange.weight") != std::string::npos;
    }));
  }
  const auto report = checked(megatron, hf);
  CHECK(std::any_of(report.unjudged.begin(), report.unjudged.end(), [](const Unjudged& one) {
    return one.what.find("model.strange.weight") != std::string::npos;
  }));
}

TEST_CASE(
    "reference of another program: layers that were trained next to frozen ones are not an error") {
  TemporaryFolder folder;
  const auto hf = changed_hf(folder, [](std::string& file) {
    const auto [first, length] = place_of("model.embed_tokens.weight");
    for (std::size_t at = first; at < first + length; at += 6) file[at] ^= 0x15;
  });
  const auto found = of_conversion(checked(hf, open_side(kMappedPair + "megatron")));
  REQUIRE(found.size() == 1);
  CHECK(found[0].severity == Severity::kWarning);
  CHECK(found[0].subjects == std::vector<std::string>{"model.embed_tokens.weight"});
}

TEST_CASE("reference of another program: another step with norms as they began is not a mistake") {
  TemporaryFolder folder;
  const auto hf = changed_hf(folder, [](std::string& file) {
    const auto length = load_little<std::uint64_t>(std::as_bytes(std::span(file).first(8)));
    for (std::size_t at = 8 + length; at < file.size(); at += 2) file[at] ^= 0x05;
    const auto [first, size] = place_of("model.norm.weight");
    std::fill_n(file.begin() + static_cast<std::ptrdiff_t>(first), size, '\0');
  });
  CHECK(of_conversion(checked(hf, open_side(kMappedPair + "megatron"))).empty());
}

TEST_CASE("reference of another program: the map that is named is used") {
  const auto hf = open_side(kMappedPair + "hf"), megatron = open_side(kMappedPair + "megatron");
  verbs::Opened opened;
  opened.checkpoint = hf;
  opened.reference = megatron;
  const auto with_map = [&](const std::string& map) {
    opened.mapping.map = map;
    return verbs::check(opened, std::nullopt, nullptr);
  };
  CHECK(with_map("hf-megatron").value().verdict == Verdict::kClean);
  // Another map does not join the two programs, so the check fails.
  const auto other = with_map("hf-titan");
  REQUIRE_FALSE(other.has_value());
  CHECK(other.error().kind == ErrorKind::kUsage);
  const auto unknown = with_map("no-such-map");
  REQUIRE_FALSE(unknown.has_value());
  CHECK(unknown.error().advice.find("hf-megatron") != std::string::npos);
  opened.mapping = {};
  opened.mapping.set = {"groups"};
  CHECK_FALSE(verbs::check(opened, std::nullopt, nullptr).has_value());
}

TEST_CASE("reference of another program: a copy is compared with its original") {
  const std::string copy = "model.layers.2.embed_tokens.weight", of = "model.embed_tokens.weight";
  TemporaryFolder folder;
  std::ifstream in(std::string(SHW_SOURCE_DIR) + "/assets/maps/hf-megatron.json");
  auto map = nlohmann::json::parse(in);
  map["name"] = "with-a-copy";
  map["copies"]["from"] = {{{"tensor", copy}, {"of", of}}};
  std::ofstream(folder / "map.json") << map.dump();
  verbs::Opened opened;
  opened.mapping.map = folder / "map.json";
  opened.reference = open_side(kMappedPair + "megatron");
  const auto told_with = [&](std::size_t rows) {
    TemporaryFolder model;
    opened.checkpoint =
        changed_hf(model, [&](std::string& file) { add_moved_copy(file, copy, of, rows); });
    auto report = verbs::check(opened, std::nullopt, nullptr);
    REQUIRE_MESSAGE(report.has_value(), report.error().message);
    return of_conversion(*report);
  };
  CHECK(told_with(0).empty());
  const auto told = told_with(1);
  REQUIRE(told.size() == 1);
  CHECK(told[0].subjects == std::vector<std::string>{copy});
  CHECK(told[0].cause.find(of) != std::string::npos);
}

TEST_CASE("reference of the same program: a wrong conversion is named as next to another one") {
  const auto right = open_side(kMappedPair + "hf");
  const std::string fqn = "model.layers.1.self_attn.q_proj.weight";
  TemporaryFolder folder;
  // Rows of rotary pairs are adjacent, instead of in two halves of each head.
  const auto wrong = changed_hf(folder, [&](std::string& file) {
    const auto [at, size] = place_of(fqn);
    const auto rows = static_cast<std::size_t>(right->shape(*right->find(fqn))[0]);
    const std::size_t row = size / rows, head = 4;
    const std::string was = file.substr(at, size);
    for (std::size_t i = 0; i < rows; ++i) {
      const std::size_t in_head = i % head;
      const std::size_t from = i - in_head + in_head % 2 * (head / 2) + in_head / 2;
      file.replace(at + i * row, row, was, from * row, row);
    }
  });
  const CheckReport report = checked(wrong, right);
  const auto named = of_conversion(report);
  REQUIRE(named.size() == 1);
  CHECK(named.front().subjects == std::vector<std::string>{fqn});
  CHECK(named.front().cause.find("rotary") != std::string::npos);
  // Less specific findings about the same tensor were removed.
  for (const Finding& finding : report.findings)
    CHECK((finding.rule == named.front().rule || finding.subjects != named.front().subjects));
  CHECK(of_conversion(checked_when_repaired(*wrong, report, right, folder / "mended")).empty());
  CHECK(of_conversion(checked(right, right)).empty());
}

TEST_CASE("reference of the same program: weights of another step are not a wrong conversion") {
  const auto right = open_side(kMappedPair + "hf");
  TemporaryFolder folder;
  const auto later = changed_hf(folder, [&](std::string& file) {
    for (const TensorId tensor : right->tensors()) {
      const auto [at, size] = place_of(std::string(right->fqn(tensor)));
      for (std::size_t i = 0; i < size; i += 4) file[at + i] = static_cast<char>(file[at + i] ^ 1);
    }
  });
  CHECK(of_conversion(checked(later, right)).empty());
}

TEST_CASE("reference of the same program: shifted norms are told once") {
  const auto right = open_side(kMappedPair + "hf");
  TemporaryFolder folder;
  const auto wrong = changed_hf(folder, [&](std::string& file) {
    for (const TensorId tensor : right->tensors()) {
      const std::string fqn(right->fqn(tensor));
      if (fqn.find("norm") == std::string::npos) continue;
      const auto [at, size] = place_of(fqn);
      for (std::size_t i = 0; i < size; i += 2) {  // bfloat16: the upper half of a float32
        const auto byte = [&](std::size_t k) {
          return std::uint32_t{static_cast<unsigned char>(file[k])};
        };
        std::uint32_t bits = byte(at + i) << 16U | byte(at + i + 1) << 24U;
        bits = std::bit_cast<std::uint32_t>(std::bit_cast<float>(bits) + 1.0F);
        bits = (bits + 0x7FFFU + (bits >> 16U & 1U)) >> 16U;  // to even
        file[at + i] = static_cast<char>(bits & 0xFFU);
        file[at + i + 1] = static_cast<char>(bits >> 8U);
      }
    }
  });
  const CheckReport report = checked(wrong, right);
  REQUIRE(of_conversion(report).size() == 1);
  CHECK(of_conversion(report).front().cause.find("@norms:-1") != std::string::npos);
  for (const Finding& finding : report.findings) CHECK(finding.rule != "norms-shifted");
  // What is offered takes the 1 off. What was cut off with it is nowhere, and nobody says it is.
  REQUIRE(of_conversion(report).front().remedy.has_value());
  CHECK_FALSE(of_conversion(report).front().remedy->lossless);
  const CheckReport repaired = checked_when_repaired(*wrong, report, right, folder / "mended");
  for (const Finding& finding : of_conversion(repaired))
    CHECK(finding.cause.find("larger by 1") == std::string::npos);
}

TEST_CASE("reference of another program: norms of 1 + w are put right, to the bit where they can") {
  const auto hf = open_side(kMappedPair + "hf"), megatron = open_side(kMappedPair + "megatron");
  for (const bool is_near_one : {true, false}) {
    CAPTURE(is_near_one);
    TemporaryFolder folder;
    // Differences of numbers near 1 are exact, and sums of small numbers are rounded.
    const auto source = shift_norm_weights(hf, is_near_one ? 1.0F : 0.0F, nullptr);
    REQUIRE(source.has_value());
    const auto reference = made_by_steps(*source, {}, folder / "reference");
    const AddStep shift{norms_of(*reference), is_near_one ? -1.0 : 1.0};
    const auto wrong = made_by_steps(reference, {shift}, folder / "wrong");
    const CheckReport report = checked(wrong, reference);
    const auto told = of_conversion(report);
    REQUIRE(told.size() == 1);
    REQUIRE(told[0].remedy.has_value());
    CHECK(told[0].remedy->lossless == is_near_one);
    const CheckReport mended = checked_when_repaired(*wrong, report, reference, folder / "mended");
    CHECK(of_conversion(mended).empty() == is_near_one);
    // Next to the other program the same is found, and mended.
    if (is_near_one) continue;
    const auto beside = of_conversion(checked(wrong, megatron));
    REQUIRE(beside.size() == 1);
    CHECK(beside[0].remedy.has_value());
  }
}

TEST_CASE(
    "reference of another program: tensors that are missing have the names of their program") {
  TemporaryFolder folder;
  const auto hf = open_side(kMappedPair + "hf"), megatron = open_side(kMappedPair + "megatron");
  const std::string fqn = "model.layers.0.mlp.down_proj.weight";
  const auto without = made_by_steps(hf, {DropStep{{fqn}}}, folder / "without");
  const auto told = of_conversion(checked(without, megatron));
  REQUIRE(told.size() == 1);
  CAPTURE(told[0].cause);
  CHECK(told[0].subjects == std::vector<std::string>{fqn});
}

TEST_CASE("reference of another program: experts that are numbered from 1 get their numbers") {
  TemporaryFolder folder;
  const auto hf = open_side(kMappedPair + "hf");
  std::vector<Step> experts, from_one;
  for (const char* layer : {"model.layers.0.mlp.", "model.layers.1.mlp."}) {
    const std::string mlp = layer;
    for (const char* part : {"gate_proj.weight", "up_proj.weight", "down_proj.weight"}) {
      experts.emplace_back(RenameStep{mlp + part, mlp + "experts.0." + part});
      experts.emplace_back(CopyStep{mlp + "experts.0." + part, mlp + "experts.1." + part});
      experts.emplace_back(AddStep{{mlp + "experts.1." + part}, 0.25});
      from_one.emplace_back(RenameStep{mlp + "experts.1." + part, mlp + "experts.2." + part});
      from_one.emplace_back(RenameStep{mlp + "experts.0." + part, mlp + "experts.1." + part});
    }
  }
  const auto right = made_by_steps(hf, experts, folder / "right");
  verbs::MapOptions mapping;
  auto megatron = verbs::mapped_view(right, "torch_dist", mapping, nullptr);
  REQUIRE_MESSAGE(megatron.has_value(), megatron.error().message);
  const auto wrong = made_by_steps(right, from_one, folder / "wrong");
  const CheckReport report = checked(wrong, megatron->checkpoint);
  const auto told = of_conversion(report);
  REQUIRE(told.size() == 1);
  CHECK(told[0].cause.find("numbered from 1") != std::string::npos);
  const CheckReport repaired =
      checked_when_repaired(*wrong, report, megatron->checkpoint, folder / "mended");
  CHECK(of_conversion(repaired).empty());
}

TEST_CASE("reference of the same program: mistakes are named where no file says the heads") {
  TemporaryFolder folder;
  std::filesystem::copy(kMappedPair + "megatron", folder / "bare",
                        std::filesystem::copy_options::recursive);
  std::filesystem::remove(folder / "bare/common.pt");
  const auto right = open_side(folder / "bare");
  const std::string qkv = "decoder.layers.self_attention.linear_qkv.weight";
  const std::int64_t rows = right->shape(*right->find(qkv))[1];
  PermuteBlocksStep swap{{qkv}, 1, {}, {}};
  for (std::int64_t i = 0; i < rows; ++i) swap.order.push_back(i ^ 1);
  const auto named = [&](std::vector<Step> steps) {
    auto state = apply_steps(target_state_of(right), steps);
    REQUIRE_MESSAGE(state.has_value(), state.error().message);
    auto view = target_view(std::make_shared<const TargetState>(std::move(*state)), nullptr);
    REQUIRE(view.has_value());
    return of_conversion(checked(*view, right));
  };
  CHECK(named({}).empty());
  const auto shifted = named({AddStep{norms_of(*right), 1}});
  REQUIRE(shifted.size() == 1);
  CHECK(shifted[0].cause.find("larger by 1") != std::string::npos);
  CHECK_FALSE(named({swap}).empty());
}

TEST_CASE("reference of the same program: shifted norms of stacked layers are named") {
  const auto right = open_side(kMappedPair + "megatron");
  const auto shifted = shift_norm_weights(right, 1.0F, nullptr);
  REQUIRE(shifted.has_value());
  const auto named = of_conversion(checked(*shifted, right));
  REQUIRE(named.size() == 1);
  CHECK(named.front().cause.find("larger by 1") != std::string::npos);
  // Norms were trained next to frozen weights.
  const auto trained = shift_norm_weights(right, 0.03F, nullptr);
  REQUIRE(trained.has_value());
  CHECK(of_conversion(checked(*trained, right)).empty());
}
