// Two shapes whose numbers tell more than that they differ.
#include <doctest/doctest.h>
#include <fmt/core.h>

#include <string>

#include "core/explain/support.h"

using namespace shw;
using namespace shw::test;

namespace {

std::string first_of(const Extents& saved, const Extents& current, const std::string& fqn) {
  const std::string all = first(explain(sentence(saved, current, fqn)));
  return all.substr(0, all.find(' '));
}

}  // namespace

TEST_CASE("explain: axes that are joined on one side keep their elements") {
  CHECK(first_of({768, 768}, {768, 12, 64}, "attention.query.kernel") == "H-FO");
  CHECK(first_of({1280, 3, 2, 14, 14}, {1280, 1176}, "patch_embed.proj.weight") == "H-FO");
  CHECK(first_of({12, 64}, {768}, "query.bias") == "H-FO");
  CHECK(first_of({768, 768}, {768, 13, 64}, "attention.query.kernel") != "H-FO");
  CHECK(first_of({589824}, {768, 768}, "fc.weight") != "H-FO");
}

TEST_CASE("explain: a table of positions is known by its grids where its name is cut") {
  CHECK(first_of({577, 1024}, {257, 1024}, "weight") == "H-P");
  CHECK(first_of({577, 1024}, {257, 1024}, "model.layers.0.fc.weight") != "H-P");
  CHECK(first_of({512, 768}, {1024, 768}, "embeddings.position_embedding.weight") == "H-P");
  CHECK(first_of({77, 768}, {77, 512}, "embeddings.position_embedding.weight") != "H-P");
}

TEST_CASE("explain: rows of a padded vocabulary are one rank's part") {
  CHECK(first_of({25216, 64}, {50304, 64}, "word_embeddings.weight") == "H-VP");
  CHECK(first_of({50304, 64}, {25216, 64}, "weight") == "H-VP");
  CHECK(first_of({30000, 64}, {50304, 64}, "word_embeddings.weight") != "H-VP");
}

TEST_CASE("explain: the channels of the input differ, not the model") {
  CHECK(first_of({64, 1, 3, 3}, {64, 3, 3, 3}, "down1.conv.weight") == "H-IC");
  CHECK(first_of({1280, 128, 3}, {1280, 80, 3}, "encoder.conv1.weight") == "H-IC");
  CHECK(first_of({3072, 384}, {3072, 64}, "img_in.weight") == "H-IC");
  CHECK(first_of({64, 128, 3, 3}, {64, 256, 3, 3}, "down2.conv.weight") != "H-IC");
}

TEST_CASE("explain: a ratio that two widths have too is a block of GGUF only for its readers") {
  CHECK(first_of({32000, 5120}, {32000, 8192}, "blocks.0.proj.weight") != "H-G");
  CHECK(first_of({4096, 2304}, {4096, 4096}, "blocks.0.proj.weight") == "H-G");
}

TEST_CASE("explain: the sentence says which of two shapes is asked for") {
  const ErrorText parsed = parse_error_text(
      "AssertionError: 'layers.0.wq.weight' has shape [1048576] but expected [4096, 4096]");
  REQUIRE(parsed.messages.size() == 1);
  CHECK(parsed.messages[0].saved == Extents{1048576});
  CHECK(parsed.messages[0].current == Extents{4096, 4096});
}

TEST_CASE("explain: a factor of eight in a quantiser's code is packing") {
  const std::string words =
      "RuntimeError: The size of tensor a (4096) must match the size of tensor b (512) at "
      "non-singleton dimension 1";
  CHECK(first(explain("File \"/x/site-packages/awq/linear.py\", line 3, in f\n" + words)) ==
        "packed request");
  CHECK(first(explain("File \"/x/site-packages/megatron/a.py\", line 3, in f\n" + words)) ==
        "one-ranks-part either");
}

TEST_CASE("explain: a small index that is too large is a part's, a large one a token's") {
  const auto first_for = [](int index, int size) {
    return first(explain(fmt::format(
        "IndexError: index {} is out of bounds for dimension 0 with size {}", index, size)));
  };
  CHECK(first_for(1, 1) == "other-parts either");
  CHECK(first_for(32001, 32000) == "vocabulary either");
}

TEST_CASE("explain: the parts of a trainer's checkpoint are told from tensors") {
  CHECK(first(explain("Missing key(s) in state_dict: \"pos_embed\", \"head.weight\". Unexpected "
                      "key(s) in state_dict: \"epoch\", \"arch\", \"state_dict\", \"optimizer\", "
                      "\"version\", \"amp_scaler\".")) == "whole-checkpoint request");
}
