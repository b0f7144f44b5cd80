// One part of a quantised weight is changed: another dtype for the same bytes, another shape, one
// row less. Either the weight still reads as its truth, or it is not decoded and `check` reports
// it. Nothing is decoded to other numbers.
#include <doctest/doctest.h>

#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "core/facts/values/dequantised.h"
#include "core/fixtures.h"
#include "core/formats/items/items.h"
#include "core/formats/open.h"
#include "core/make_zip.h"
#include "core/read_all.h"
#include "core/rules/check.h"

using namespace shw;
using namespace shw::test;
using nlohmann::json;

namespace {

struct StoredParts {
  json header;
  std::string data, config;

  std::shared_ptr<const Checkpoint> open() const {
    const std::string written = header.dump();
    auto opened = open_checkpoint(memory_directory(
        "m", {{"model.safetensors", to_bytes(little(written.size(), 8) + written + data)},
              {"config.json", to_bytes(config)}}));
    return opened ? *opened : nullptr;
  }
};

std::string text_of_file(const std::string& folder, const std::string& name) {
  auto source = open_file(folder + "/" + name, name);
  REQUIRE(source.has_value());
  auto bytes = read_bytes(**source, 0, (*source)->size());
  REQUIRE(bytes.has_value());
  return {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
}

StoredParts stored_parts(const std::string& name) {
  const std::string folder = std::string(SHW_TEST_DATA) + "/quantised/" + name + "/ckpt";
  const std::string text = text_of_file(folder, "model.safetensors");
  std::uint64_t length = 0;
  std::memcpy(&length, text.data(), sizeof length);
  return {json::parse(text.substr(8, length)), text.substr(8 + length),
          text_of_file(folder, "config.json")};
}

// Dtypes of as many bytes. A 16-bit float read as another is left out: only the other weights of
// the model tell that.
std::vector<std::string> other_dtypes(const std::string& dtype) {
  const std::vector<std::vector<std::string>> kEqual = {
      {"U8", "I8", "BOOL", "F8_E4M3", "F8_E5M2", "F8_E8M0"},
      {"F16", "I16", "U16"},
      {"BF16", "I16", "U16"},
      {"F32", "I32", "U32"},
      {"I64", "U64", "F64"}};
  std::vector<std::string> others;
  for (const auto& equal : kEqual) {
    if (std::ranges::find(equal, dtype) == equal.end() || !others.empty()) continue;
    for (const std::string& one : equal)
      if (one != dtype) others.push_back(one);
  }
  return others;
}

struct Change {
  std::string name;
  json tensor;
};

std::vector<Change> changes_of(const json& tensor) {
  std::vector<Change> changes;
  auto add = [&](std::string name, const char* key, json value) {
    changes.push_back({std::move(name), tensor});
    changes.back().tensor[key] = std::move(value);
  };
  const auto dtype = tensor["dtype"].get<std::string>();
  for (const std::string& other : other_dtypes(dtype)) add(dtype + " as " + other, "dtype", other);
  const auto shape = tensor["shape"].get<Extents>();
  Extents with_one = shape, flat{volume(shape).value()};
  with_one.insert(with_one.begin(), 1);
  add("one more dimension", "shape", with_one);
  if (shape.size() < 2) return changes;
  add("flat", "shape", flat);
  Extents swapped = shape;
  std::swap(swapped[0], swapped[1]);
  if (swapped != shape) add("rows and columns swapped", "shape", swapped);
  const auto begin = tensor["data_offsets"][0].get<std::int64_t>();
  const auto end = tensor["data_offsets"][1].get<std::int64_t>();
  add("the first row alone", "data_offsets", {begin, begin + (end - begin) / shape[0]});
  changes.back().tensor["shape"][0] = 1;
  return changes;
}

enum class Outcome { kTruth, kNotDecoded, kOther };

// Compares what reads as a decoded weight with its truth.
Outcome outcome_of(const Checkpoint& stored, const Checkpoint& made, const std::string& fqn,
                   const TruthTensor& truth) {
  const auto tensor = made.find(fqn);
  const auto as_stored = stored.find(fqn);
  if (!tensor || made.dtype(*tensor) != truth.dtype ||
      (as_stored && stored.dtype(*as_stored) == truth.dtype &&
       same(stored.shape(*as_stored), made.shape(*tensor)) && fqn.find("norm") == fqn.npos &&
       fqn.find("embed") == fqn.npos))
    return Outcome::kNotDecoded;
  const auto values = read_tensor(made, *tensor);
  if (!values) return Outcome::kNotDecoded;
  const bool is_truth = values->bytes == truth.bytes && values->shape == truth.shape;
  return is_truth ? Outcome::kTruth : Outcome::kOther;
}

bool is_reported(const Checkpoint& checkpoint) {
  CheckOptions options;
  options.depth = Depth::kHeaders;
  const auto report = check(checkpoint, options);
  REQUIRE(report.has_value());
  return std::ranges::any_of(
      report->findings, [](const Finding& finding) { return finding.severity != Severity::kInfo; });
}

void check_change(const StoredParts& changed, const std::map<std::string, TruthTensor>& truth) {
  const auto stored = changed.open();
  if (stored == nullptr) return;
  const auto made = dequantised(stored, nullptr);
  bool all = made.has_value();
  for (const auto& [fqn, expected] : truth) {
    if (!made) break;
    CAPTURE(fqn);
    const Outcome outcome = outcome_of(*stored, **made, fqn, expected);
    CHECK(outcome != Outcome::kOther);
    all = all && outcome == Outcome::kTruth;
  }
  if (!all) CHECK(is_reported(*stored));
}

}  // namespace

TEST_CASE("quantised parts: a part that does not fit is reported and nothing is decoded from it") {
  for (const std::string name : {"fp8_block",
                                 "mxfp4",
                                 "gptq",
                                 "awq",
                                 "nf4",
                                 "int8",
                                 "nvfp4",
                                 "mlx",
                                 "packed",
                                 "mxfp8",
                                 "mxfp4_packed",
                                 "packed_asymmetric",
                                 "packed_actorder",
                                 "auto_round_gptq",
                                 "auto_round_awq",
                                 "mlx_mixed",
                                 "mlx_mxfp8",
                                 "mlx_nvfp4",
                                 "nf4_in_bfloat16",
                                 "gptq_3bit",
                                 "gptq_planes",
                                 "auto_round_bits",
                                 "hqq"}) {
    CAPTURE(name);
    const StoredParts whole_parts = stored_parts(name);
    auto truth =
        read_truth(std::string(SHW_TEST_DATA) + "/quantised/" + name + "/truth.safetensors");
    REQUIRE(truth.has_value());
    check_change(whole_parts, *truth);
    std::set<std::string> endings;  // one weight of several is enough
    for (const auto& [fqn, tensor] : whole_parts.header.items()) {
      const bool is_plain =
          fqn == "__metadata__" || fqn.find("norm") != fqn.npos || fqn.find("embed") != fqn.npos;
      if (is_plain || !endings.insert(fqn.substr(fqn.rfind('.') + 1)).second) continue;
      for (const Change& change : changes_of(tensor)) {
        CAPTURE(fqn);
        CAPTURE(change.name);
        // 12 x 10 has as many blocks of 4 x 4 as 10 x 12.
        if (name == "fp8_block" && fqn == "a.weight" && change.name.starts_with("rows")) continue;
        StoredParts changed = whole_parts;
        changed.header[fqn] = change.tensor;
        check_change(changed, *truth);
      }
    }
  }
}
