// Folders with the paths, names and metadata of nanotron.serialize.weights (0.4), made here.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>

#include "core/formats/items/items.h"
#include "core/formats/nanotron/nanotron_slices.h"
#include "core/formats/open.h"
#include "core/formats/torch_file/torch_file_support.h"
#include "core/rules/check.h"

using namespace shw;
using namespace shw::test;

namespace {

using NanotronFiles = std::vector<std::pair<std::string, Bytes>>;

Bytes nanotron_bytes(const std::string& text) {
  auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// A file with the tensor "data" of floats and the description of the whole tensor.
Bytes nanotron_part(const std::string& shape, const std::vector<float>& values,
                    const std::string& pairs, const std::string& whole) {
  std::string header = "{";
  if (!pairs.empty())
    header += R"("__metadata__":{"version":"1.4","local_global_slices_pairs":")" + pairs +
              R"(","unsharded_shape":")" + whole + R"("},)";
  header += R"("data":{"dtype":"F32","shape":)" + shape + R"(,"data_offsets":[0,)" +
            std::to_string(4 * values.size()) + "]}}";
  std::string out;
  for (int i = 0; i < 8; ++i) out += static_cast<char>(header.size() >> (8 * i) & 0xff);
  out += header;
  out.append(reinterpret_cast<const char*>(values.data()), 4 * values.size());
  return nanotron_bytes(out);
}

const std::string kQkv = "10/model/model/decoder/0/pp_block/attn/qkv_proj/model_weight";

// q has two rows and k has two, on two ranks, each of which has a row of both.
NanotronFiles nanotron_run() {
  return {
      {"latest.txt", nanotron_bytes("10")},
      {"10/checkpoint_metadata.json", nanotron_bytes(R"({"version":"1.4","tp":2,"dp":1})")},
      {kQkv + "_pp-rank-0-of-1_tp-rank-0-of-2.safetensors",
       nanotron_part("[2,1]", {1, 3},
                     "0,1,None|0,1,None#0,1,None|0,1,None;1,2,None|0,1,None#2,3,"
                     "None|0,1,None",
                     "(4, 1)")},
      {kQkv + "_pp-rank-0-of-1_tp-rank-1-of-2.safetensors",
       nanotron_part("[2,1]", {2, 4},
                     "0,1,None|0,1,None#1,2,None|0,1,None;1,2,None|0,1,None#3,4,"
                     "None|0,1,None",
                     "(4, 1)")},
      {"10/model/model/final_layer_norm/pp_block/model_weight.safetensors",
       nanotron_part("[2]", {7, 8}, "", "")},
  };
}

std::vector<float> nanotron_values(const Checkpoint& checkpoint, std::string_view fqn) {
  auto tensor = checkpoint.find(fqn);
  REQUIRE(tensor.has_value());
  auto read = read_tensor(checkpoint, *tensor);
  REQUIRE_MESSAGE(read.has_value(), read.error().message);
  std::vector<float> values(read->bytes.size() / 4);
  std::memcpy(values.data(), read->bytes.data(), read->bytes.size());
  return values;
}

std::size_t nanotron_errors(const Checkpoint& checkpoint) {
  CheckOptions options;
  options.depth = Depth::kData;
  auto report = check(checkpoint, options);
  REQUIRE(report.has_value());
  std::size_t errors = 0;
  for (const Finding& finding : report->findings) errors += finding.severity != Severity::kInfo;
  return errors;
}

}  // namespace

TEST_CASE("nanotron: parts are joined by the slices that each file says") {
  auto opened = open_checkpoint(memory_directory("run", nanotron_run()));
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  CHECK((*opened)->tensor_count() == 2);
  CHECK(nanotron_values(**opened, "model.decoder.0.pp_block.attn.qkv_proj.weight") ==
        std::vector<float>{1, 2, 3, 4});
  CHECK(nanotron_values(**opened, "model.final_layer_norm.pp_block.weight") ==
        std::vector<float>{7, 8});
  CHECK(nanotron_errors(**opened) == 0);
}

TEST_CASE("nanotron: a rank's file that is missing is reported") {
  NanotronFiles files = nanotron_run();
  files.erase(files.begin() + 3);
  auto opened = open_checkpoint(memory_directory("run", files));
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  CHECK(nanotron_errors(**opened) > 0);
}

TEST_CASE("nanotron: what an optimizer's file would run is reported") {
  NanotronFiles files = nanotron_run();
  const auto clean = open_checkpoint(memory_directory("run", files));
  REQUIRE_MESSAGE(clean.has_value(), clean.error().message);
  const std::string call = "cposix\nsystem\n(V true\ntR";
  files.emplace_back(
      "10/optimizer/optimizer_pp-0-of-1_dp-0-of-1_tp-0-of-2.pt",
      to_bytes(state_dict_file(pickled_dict({{"exp_avg", tensor_call({})}, {"hook", call}}),
                               {{"m/data/0", std::string(24, '\1')}})));
  auto opened = open_checkpoint(memory_directory("run", files));
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  CHECK((*opened)->tensor_count() == (*clean)->tensor_count() + 1);
  CHECK(nanotron_errors(**opened) > 0);
}

TEST_CASE("nanotron: slices that cannot be are refused") {
  const Extents sizes{2, 3}, all{4, 3};
  CHECK(nanotron_boxes("0,2,None|0,3,None#2,4,None|0,3,None", sizes, all).has_value());
  CHECK(nanotron_boxes("0,2,None|None,None,None#2,4,1|None,None,None", sizes, all).has_value());
  for (const char* wrong :
       {"", "#", "0,2,None|0,3,None", "0,2,None|0,3,None#2,5,None|0,3,None",
        "0,2,2|0,3,None#2,4,2|0,3,None", "0,1,None|0,3,None#2,3,None|0,3,None",
        "1,2,None|0,3,None#2,3,None|0,3,None", "0,2,None#2,4,None",
        "-1,2,None|0,3,None#0,2,"
        "None|0,3,None",
        "0,99999999999999999999,None|0,3,None#0,2,None|0,3,None",
        "0,2,None|0,3,None#2,4,None|0,3,None;0,2,None|0,3,None#0,2,None|0,3,None"}) {
    CAPTURE(wrong);
    CHECK_FALSE(nanotron_boxes(wrong, sizes, all).has_value());
  }
  CHECK(nanotron_shape("(4, 3)") == Extents{4, 3});
  CHECK(nanotron_shape("(4,)") == Extents{4});
  for (const char* wrong : {"", "4", "(4", "(-4,)", "(a,)"}) CHECK_FALSE(nanotron_shape(wrong));
}

TEST_CASE("nanotron: every byte wrong in a file is answered") {
  const NanotronFiles files = nanotron_run();
  for (std::size_t file = 2; file < files.size(); ++file) {
    for (std::size_t at = 0; at < files[file].second.size(); at += 2) {
      NanotronFiles bent = files;
      bent[file].second[at] ^= std::byte{0x11};
      auto opened = open_checkpoint(memory_directory("run", bent));
      if (!opened) continue;
      for (std::uint32_t t = 0; t < (*opened)->tensor_count(); ++t)
        (void)read_tensor(**opened, TensorId{t}, 1 << 20);
    }
  }
}
