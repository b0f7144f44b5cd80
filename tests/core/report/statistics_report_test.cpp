#include "core/report/statistics_report.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/report/text_words.h"

using namespace shw;

namespace {

TensorStatistics counted_tensor(const char* fqn, std::uint64_t nan, std::uint64_t inf) {
  TensorStatistics tensor;
  tensor.fqn = fqn;
  tensor.dtype = Dtype::kFloat32;
  tensor.shape = {1000};
  Statistics& s = tensor.statistics;
  s.kind = NumberKind::kFloat;
  s.elements = 1000;
  s.nan = nan;
  s.infinite = inf;
  s.least = inf != 0 ? "-Infinity" : "-1.5";
  s.greatest = "0.00012345";
  s.mean = 1.0 / 3;
  s.std = 0.25;
  s.histogram = {{-1, 0, 1}, {1, -14, 3}};
  return tensor;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = text.find('\n', at);
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

}  // namespace

TEST_CASE("statistics as JSON have every key, with strings and null where JSON has no number") {
  std::vector<TensorStatistics> tensors{counted_tensor("a", 0, 2), counted_tensor("b", 1000, 0)};
  tensors[1].statistics = Statistics{};
  tensors[1].statistics.kind = NumberKind::kFloat;
  tensors[1].statistics.elements = tensors[1].statistics.nan = 1000;
  tensors.push_back(counted_tensor("c", 0, 0));
  tensors[2].dtype = Dtype::kComplex64;
  tensors[2].statistics = Statistics{};
  tensors[2].statistics.elements = 5;
  tensors[2].statistics.zero = 1;
  tensors[2].missing = 3;
  tensors[2].error = Error{ErrorKind::kDamaged, "cut off", {"f", 7}};
  auto json = nlohmann::json::parse(statistics_to_json(tensors));
  CHECK(json["schema"] == "shardwright/2");
  auto a = json["tensors"]["a"];
  CHECK(a["min"] == "-Infinity");
  CHECK(a["max"] == double(0.00012345F));
  CHECK(a["mean"] == 1.0 / 3);
  CHECK(a["inf"] == 2);
  CHECK(a["histogram"][1] == nlohmann::json({{"sign", 1}, {"exponent", -14}, {"count", 3}}));
  CHECK_FALSE(a.contains("missing"));
  CHECK_FALSE(a.contains("note"));
  auto b = json["tensors"]["b"];
  CHECK(b["min"].is_null());
  CHECK(b["mean"].is_null());
  CHECK(b["histogram"].empty());
  auto c = json["tensors"]["c"];
  CHECK(c["nan"].is_null());
  CHECK(c["zero"] == 1);
  CHECK(c["histogram"].is_null());
  CHECK(c["missing"] == 3);
  CHECK(c["error"]["message"] == "cut off");
  CHECK(c["error"]["offset"] == 7);
  CHECK(c["note"].get<std::string>().find("complex64") != std::string::npos);
}

TEST_CASE("the least and the greatest are numbers of the dtype, to the bit") {
  auto bounds_of = [](Dtype dtype, const char* least, const char* greatest) {
    std::vector<TensorStatistics> tensors{counted_tensor("a", 0, 0)};
    tensors[0].dtype = dtype;
    tensors[0].statistics.least = least;
    tensors[0].statistics.greatest = greatest;
    auto told = nlohmann::json::parse(statistics_to_json(tensors))["tensors"]["a"];
    return std::pair(told["min"], told["max"]);
  };
  CHECK(bounds_of(Dtype::kFloat8E4m3fn, "-450", "0.008") ==
        std::pair<nlohmann::json, nlohmann::json>(-448.0, 0.0078125));
  CHECK(bounds_of(Dtype::kBfloat16, "-31100", "Infinity") ==
        std::pair<nlohmann::json, nlohmann::json>(-31104.0, "Infinity"));
  CHECK(bounds_of(Dtype::kFloat16, "6e-08", "65500") ==
        std::pair<nlohmann::json, nlohmann::json>(0x1p-24, 65504.0));
  CHECK(bounds_of(Dtype::kFloat64, "0.1", "1e300") ==
        std::pair<nlohmann::json, nlohmann::json>(0.1, 1e300));
  CHECK(bounds_of(Dtype::kUint64, "0", "18446744073709551615") ==
        std::pair<nlohmann::json, nlohmann::json>(0, 18446744073709551615U));
}

TEST_CASE("statistics as text fit the terminal, and the sick are first") {
  const std::string name = "model.layers.11.mlp.experts.down_proj.weight";
  std::vector<TensorStatistics> tensors{
      counted_tensor("model.norm.weight", 0, 0), counted_tensor(name.c_str(), 0, 1),
      counted_tensor("model.embed_tokens.weight", 7, 0), counted_tensor("lm_head.weight", 0, 0)};
  tensors[3].unread = 4;
  tensors[3].error = Error{ErrorKind::kDamaged, "ends too soon", {"__0_0.distcp"}};
  for (int width : {60, 80, 100, 120, 200}) {
    CAPTURE(width);
    std::string text = statistics_to_text(tensors, {.colour = false, .utf8 = true, .width = width});
    for (const std::string& line : lines_of(text)) {
      CAPTURE(line);
      CHECK(display_width(line) <= static_cast<std::size_t>(width));
    }
    CHECK(text.find("__0_0.distcp: ends too soon") != std::string::npos);
    CHECK(text.find(name) != std::string::npos);
    std::size_t at = 0;
    for (const std::string& fqn :
         {std::string("lm_head.weight"), std::string("model.embed_tokens.weight"), name,
          std::string("model.norm.weight")}) {
      std::size_t found = text.find(fqn);
      CHECK(found > at);
      at = found;
    }
    CHECK(text.find("4 tensors · 1 not whole · 1 with NaN · 1 with infinities") !=
          std::string::npos);
  }
}

TEST_CASE("a narrow terminal says which columns it has no room for") {
  std::vector<TensorStatistics> tensors{
      counted_tensor("model.layers.11.mlp.experts.down_proj.weight", 0, 0)};
  auto text_at = [&](int width) {
    return statistics_to_text(tensors, {.colour = false, .utf8 = true, .width = width});
  };
  CHECK(text_at(100).find("no room for ") != std::string::npos);
  CHECK(text_at(100).find("denormal") != std::string::npos);
  CHECK(text_at(200).find("no room for ") == std::string::npos);
}
