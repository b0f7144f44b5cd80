#include "core/formats/deepspeed/zero_experts.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

namespace shw {
namespace {

constexpr std::string_view kExpertsOfRank = ".deepspeed_experts.";
// Limit, above any real number of experts: a larger one is damage.
constexpr std::int64_t kMaxExperts = 1 << 20;

// "moe.0.deepspeed_moe.experts.deepspeed_experts.1.up.weight" in three parts.
struct ExpertName {
  std::string before, behind;
  std::int64_t number = 0;
};

std::optional<ExpertName> expert_name(const std::string& name) {
  const std::size_t at = name.rfind(kExpertsOfRank);
  if (at == std::string::npos) return std::nullopt;
  ExpertName out;
  out.before = name.substr(0, at + kExpertsOfRank.size());
  const char* first = name.data() + out.before.size();
  const char* last = name.data() + name.size();
  const auto read = std::from_chars(first, last, out.number);
  if (read.ec != std::errc() || out.number < 0 || out.number >= kMaxExperts || read.ptr == last ||
      *read.ptr != '.')
    return std::nullopt;
  out.behind.assign(read.ptr, last);
  return out;
}

}  // namespace

std::vector<ZeroExperts> split_experts(const std::vector<ZeroShape>& shapes, std::int64_t ranks,
                                       std::int64_t count, bool is_data_before_expert) {
  if (count <= 0 || ranks % count != 0) return {};
  std::vector<ExpertName> names;
  std::map<std::string, std::int64_t> per_rank;  // number of a layer's experts on one rank
  for (const ZeroShape& shape : shapes) {
    auto name = expert_name(shape.name);
    if (!name) return {};
    std::int64_t& most = per_rank[name->before];
    most = std::max(most, name->number + 1);
    names.push_back(std::move(*name));
  }
  std::vector<ZeroExperts> out;
  const std::int64_t expert_ranks = ranks / count;
  for (std::int64_t e = 0; e < expert_ranks; ++e) {
    ZeroExperts experts{
        {count, is_data_before_expert ? e * count : e, is_data_before_expert ? 1 : expert_ranks},
        shapes};
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      const std::int64_t number = names[i].number + e * per_rank[names[i].before];
      experts.shapes[i].name = names[i].before + std::to_string(number) + names[i].behind;
    }
    out.push_back(std::move(experts));
  }
  return out;
}

}  // namespace shw
