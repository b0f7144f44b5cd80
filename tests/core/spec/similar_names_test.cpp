// Pairs of tensors whose names differ.
#include "core/spec/similar_names.h"

#include <doctest/doctest.h>

#include <map>
#include <string>

using namespace shw;

namespace {

// The names that are paired, for tensors of one shape.
std::map<std::string, std::string> paired(const std::vector<std::string>& here,
                                          const std::vector<std::string>& there) {
  const Extents shape = {8, 8};
  std::vector<NamedShape> a, b;
  std::vector<std::string_view> all_a(here.begin(), here.end()), all_b(there.begin(), there.end());
  for (const std::string& name : here) a.push_back({name, shape});
  for (const std::string& name : there) b.push_back({name, shape});
  std::map<std::string, std::string> out;
  const auto found = match_similar_names(a, b, all_a, all_b);
  for (std::size_t i = 0; i < found.size(); ++i)
    if (found[i]) out[here[i]] = there[*found[i]];
  return out;
}

}  // namespace

TEST_CASE("alike names: of words that fit equally often the most alike ones are a pair") {
  std::vector<std::string> here, there;
  for (const char* side : {"encoder", "decoder"}) {
    for (const char* word : {"to_q", "to_k", "to_v"})
      here.push_back(std::string(side) + ".mid.attn_1." + word + ".weight");
    for (const char* word : {"q", "k", "v", "proj_out"})
      there.push_back(std::string(side) + ".mid.attn_1." + word + ".weight");
  }
  const auto pairs = paired(here, there);
  CHECK(pairs.size() == 6);
  for (const auto& [name, other] : pairs) CHECK(name.find("to_" + other.substr(19)) != name.npos);
}

TEST_CASE("alike names: one pair is a renaming only if the words are nearly equal") {
  CHECK(paired({"backbone.embedding.weight", "backbone.norm.weight"},
               {"backbone.embeddings.weight", "backbone.norm.weight"})
            .at("backbone.embedding.weight") == "backbone.embeddings.weight");
  CHECK(paired({"backbone.embedding.weight"}, {"backbone.position.weight"}).empty());
}
