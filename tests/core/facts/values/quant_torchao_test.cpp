// torchao's int4, MX and NVFP4 classes, as torchao 0.18 and torch 2.15 wrote them
// (tests/data/quantised/torchao_*). The expected values are torchao's own: dequantize(), and for
// int4, whose classes have none, its functions for codes that are not packed.
#include "core/facts/values/quant_torchao.h"

#include <doctest/doctest.h>

#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "core/facts/values/dequantised.h"
#include "core/fixtures.h"
#include "core/formats/items/items.h"
#include "core/formats/open.h"
#include "core/formats/table.h"
#include "core/io/read_whole.h"
#include "core/make_zip.h"
#include "core/read_all.h"
#include "core/rules/check.h"
#include "core/verbs/values/quantised_parts.h"

using namespace shw;
using namespace shw::test;
using nlohmann::json;

namespace {

std::string torchao_data(const std::string& name) {
  return std::string(SHW_TEST_DATA) + "/quantised/torchao_" + name;
}

Bytes torchao_file(const std::string& name) {
  auto source = open_file(torchao_data(name) + "/ckpt/model.safetensors", "model.safetensors");
  REQUIRE(source.has_value());
  auto bytes = read_bytes(**source, 0, (*source)->size());
  REQUIRE(bytes.has_value());
  return std::move(*bytes);
}

// The fixture with a changed header.
std::shared_ptr<const Checkpoint> with_header(const std::string& name,
                                              const std::function<void(json&)>& change) {
  const Bytes bytes = torchao_file(name);
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::uint64_t length = 0;
  std::memcpy(&length, text.data(), sizeof length);
  json header = json::parse(text.substr(8, length));
  change(header);
  const std::string written = header.dump();
  auto opened = open_checkpoint(memory_directory(
      "m", {{"model.safetensors",
             to_bytes(little(written.size(), 8) + written + text.substr(8 + length))}}));
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  return *opened;
}

std::vector<std::string> parts_in(const std::string& name) {
  std::vector<std::string> names;
  with_header(name, [&](json& header) {
    for (const auto& [fqn, tensor] : header.items())
      if (fqn != "__metadata__" && fqn != "norm.weight") names.push_back(fqn);
  });
  return names;
}

// Each weight is decoded to its truth, or stays as it is stored and a finding says why.
void check_decoded_or_kept(const std::shared_ptr<const Checkpoint>& stored,
                           const std::string& truth_of, const std::string& changed) {
  auto made = dequantised(stored, nullptr);
  REQUIRE_MESSAGE(made.has_value(), made.error().message);
  auto truth = read_truth(torchao_data(truth_of) + "/truth.safetensors");
  REQUIRE(truth.has_value());
  std::size_t decoded = 0;
  for (const auto& [fqn, expected] : *truth) {
    CAPTURE(fqn);
    const auto tensor = (*made)->find(fqn);
    const std::string module = fqn.substr(0, fqn.rfind('.'));
    const bool is_changed = changed.starts_with(module + ".");
    if (!tensor) {
      CHECK(is_changed);
      if (!changed.ends_with("qdata")) CHECK_FALSE((*made)->opening_findings().empty());
      continue;
    }
    ++decoded;
    auto read = read_tensor(**made, *tensor);
    if (is_changed && !read) continue;
    REQUIRE_MESSAGE(read.has_value(), read.error().message);
    // Scales without a weight count among the model's other dtypes.
    if (read->dtype == expected.dtype) CHECK(read->bytes == expected.bytes);
  }
  CHECK(decoded + 1 >= truth->size());
}

std::vector<Finding> quantised_findings(const Checkpoint& checkpoint) {
  CheckOptions options;
  options.depth = Depth::kData;
  auto report = check(checkpoint, options, nullptr);
  REQUIRE(report.has_value());
  std::vector<Finding> found;
  for (const Finding& finding : report->findings)
    if (finding.severity != Severity::kInfo) found.push_back(finding);
  return found;
}

}  // namespace

TEST_CASE("quant_torchao: weights that torch.save wrote with their class decode alike") {
  for (const std::string name : {"int4", "mx"}) {
    CAPTURE(name);
    auto stored = open_checkpoint(torchao_data(name) + "/model.pt");
    REQUIRE_MESSAGE(stored.has_value(), stored.error().message);
    auto made = dequantised(*stored, nullptr);
    REQUIRE_MESSAGE(made.has_value(), made.error().message);
    auto truth = read_truth(torchao_data(name) + "/truth.safetensors");
    REQUIRE(truth.has_value());
    CHECK((*made)->tensor_count() == truth->size());
    check_elements(**made, *truth);
  }
}

TEST_CASE("quant_torchao: int4 tiles and int8 in the classes of torchao 0.13 decode") {
  auto stored = open_checkpoint(torchao_data("aqt") + "/model.pt");
  REQUIRE_MESSAGE(stored.has_value(), stored.error().message);
  auto made = dequantised(*stored, nullptr);
  REQUIRE_MESSAGE(made.has_value(), made.error().message);
  auto truth = read_truth(torchao_data("aqt") + "/truth.safetensors");
  REQUIRE(truth.has_value());
  CHECK((*made)->tensor_count() == truth->size());
  check_elements(**made, *truth);
}

TEST_CASE("quant_torchao: the classes of both kinds of files have names and shapes") {
  for (const std::string path : {"int4/ckpt", "int4/model.pt"}) {
    CAPTURE(path);
    auto stored =
        open_checkpoint(torchao_data(path.substr(0, path.find('/'))) + path.substr(path.find('/')));
    REQUIRE(stored.has_value());
    std::string tiles, square;
    for (const TensorClass& one : tensor_classes(**stored)) {
      if (one.fqn == "tiles.weight") tiles = one.type + to_text(one.shape.value_or(Extents{}));
      if (one.fqn == "square.weight") square = one.type + to_text(one.shape.value_or(Extents{}));
    }
    CHECK(tiles == "Int4TilePackedTo4dTensor[10, 96]");
    CHECK(square == "Int4Tensor[4, 128]");
  }
}

TEST_CASE("quant_torchao: without the classes only what the shapes tell is decoded") {
  const auto stored = with_header("int4", [](json& header) {
    header["__metadata__"] = {{"format", "pt"}};
  });
  auto made = dequantised(stored, nullptr);
  REQUIRE(made.has_value());
  // Padded to tiles, and scales [4, 4] that fit int8 as well.
  for (const char* kept : {"tiles", "tiles2", "square"})
    CHECK((*made)->find(std::string(kept) + "._weight_qdata").has_value());
  for (const char* decoded : {"a", "many", "words", "int8"})
    CHECK((*made)->find(std::string(decoded) + ".weight").has_value());
  CHECK((*made)->opening_findings().size() == 2);
}

TEST_CASE("quant_torchao: parts of other shapes, or missing ones, leave the weight as it is") {
  const std::vector<std::function<json(const json&)>> changes = {
      [](const json& shape) {  // one dimension
        std::int64_t all = 1;
        for (const auto& size : shape) all *= size.get<std::int64_t>();
        return json::array({all});
      },
      [](const json& shape) {
        return json(std::vector<std::int64_t>(shape.rbegin(), shape.rend()));
      },
      [](const json& shape) {
        json more = shape;
        more.insert(more.begin(), 1);
        return more;
      },
      [](const json& shape) {
        json more = shape;
        more.push_back(1);
        return more;
      }};
  for (const std::string name : {"int4", "mx"}) {
    for (const std::string& part : parts_in(name)) {
      CAPTURE(part);
      for (const auto& change : changes) {
        check_decoded_or_kept(with_header(name,
                                          [&](json& header) {
                                            json& shape = header[part]["shape"];
                                            shape = change(shape);
                                          }),
                              name, part);
      }
      check_decoded_or_kept(with_header(name,
                                        [&](json& header) {
                                          header["other." + part] = header[part];
                                          header.erase(part);
                                        }),
                            name, part);
    }
  }
}

TEST_CASE("quant_torchao: a weight is not decoded without a part that its class lists") {
  for (const auto& [name, part] : std::vector<std::pair<std::string, std::string>>{
           {"mx", "nv_scaled._weight_per_tensor_scale"},
           {"mx", "nv_many._weight_per_tensor_scale"},
           {"mx", "mx8._weight_scale"},
           {"mx", "nv._weight_qdata"},
           {"int4", "int8._weight_zero_point"},
           {"int4", "a._weight_zero_point"}}) {
    CAPTURE(part);
    const auto stored = with_header(name, [&](json& header) {
      header["other." + part] = header[part];  // its bytes stay
      header.erase(part);
    });
    auto made = dequantised(stored, nullptr);
    REQUIRE(made.has_value());
    CHECK_FALSE((*made)->find(part.substr(0, part.find('.')) + ".weight").has_value());
    bool is_named = false;
    for (const Finding& finding : quantised_findings(*stored))
      is_named =
          is_named || (finding.rule == "quantised-pairs" &&
                       finding.cause.find(part.substr(0, part.find('.'))) != std::string::npos);
    CHECK(is_named);
  }
}

TEST_CASE("quant_torchao: a weight whose inputs are scaled too stays as it is") {
  for (const std::string weight : {"int8", "a", "tiles"}) {
    CAPTURE(weight);
    const auto stored = with_header("int4", [&](json& header) {
      header[weight + "._weight_act_pre_scale"] = header["norm.weight"];
      header.erase("norm.weight");
    });
    auto made = dequantised(stored, nullptr);
    REQUIRE(made.has_value());
    CHECK((*made)->find(weight + "._weight_qdata").has_value());
    REQUIRE((*made)->opening_findings().size() == 1);
    CHECK((*made)->opening_findings()[0].cause.find("act_pre_scale") != std::string::npos);
  }
}

TEST_CASE("quant_torchao: a class that does not fit the parts leaves the weight as it is") {
  const std::string fitting = R"({"_type": "Int4TilePackedTo4dTensor", "_tensor_data_names": [],
                                 "_data": {"shape": [10, 96]}})";
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"[10, 96]", "[17, 96]"},
           {"[10, 96]", "[10, 1025]"},
           {"[10, 96]", "[0, 96]"},
           {"[10, 96]", "[-1, 96]"},
           {"[10, 96]", "[96]"},
           {"[10, 96]", "\"10\""},
           {"[10, 96]", "[10, 9.5]"},
           {"[10, 96]", "[10, 18446744073709551615]"},
           {"Int4TilePackedTo4dTensor", "NVFP4Tensor"},
           {"Int4TilePackedTo4dTensor", "Int4PreshuffledTensor"}}) {
    CAPTURE(to);
    std::string entry = fitting;
    entry.replace(entry.find(from), from.size(), to);
    const auto stored =
        with_header("int4", [&](json& header) { header["__metadata__"]["tiles.weight"] = entry; });
    check_decoded_or_kept(stored, "int4", "tiles._weight_qdata");
    auto made = dequantised(stored, nullptr);
    REQUIRE(made.has_value());
    CHECK((*made)->find("tiles._weight_qdata").has_value());
  }
}

TEST_CASE("quant_torchao: every weight is listed with its scheme and its parts") {
  for (const std::string path : {"/ckpt", "/model.pt"}) {
    for (const std::string name : {"int4", "mx"}) {
      CAPTURE(name);
      auto stored = open_checkpoint(torchao_data(name) + path);
      REQUIRE(stored.has_value());
      std::set<std::string> schemes;
      std::size_t parts = 0;
      for (const QuantisedWeight& weight : verbs::quantised_weights(**stored)) {
        schemes.insert(weight.scheme);
        parts += weight.tensors.size();
      }
      CHECK(parts + 1 == (*stored)->tensor_count());
      const std::set<std::string> int4 = {"int4", "int4 tiles", "torchao"},
                                  mx = {"MXFP4", "MXFP8", "NVFP4"};
      CHECK(schemes == (name == "mx" ? mx : int4));
    }
  }
}

TEST_CASE("quant_torchao: sound weights are not reported, and scales of another shape are") {
  for (const std::string name : {"int4", "mx"}) {
    CAPTURE(name);
    for (const Finding& finding : quantised_findings(*with_header(name, [](json&) {}))) {
      CHECK_MESSAGE(false, finding.cause);
    }
  }
  const auto changed = with_header("int4", [](json& header) {
    header["a._weight_zero_point"]["shape"] = {12, 2};
    header["tiles._weight_scale_and_zero"]["shape"] = {16, 32, 2};
  });
  std::string causes;
  for (const Finding& finding : quantised_findings(*changed)) causes += finding.cause + "\n";
  CHECK(causes.find("a._weight_zero_point is [12, 2]") != std::string::npos);
  CHECK(causes.find("tiles._weight_scale_and_zero is [16, 32, 2]") != std::string::npos);
}
