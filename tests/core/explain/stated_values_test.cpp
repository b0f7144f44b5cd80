// What a sentence says was expected and found, and which program says it.
#include <doctest/doctest.h>

#include <string>

#include "core/explain/error_text.h"
#include "core/explain/speaker.h"
#include "core/explain/stated_values.h"
#include "core/explain/support.h"

using namespace shw;
using namespace shw::test;

namespace {

std::string stated(std::string_view sentence) {
  auto values = stated_values(sentence);
  return values ? values->expected + " | " + values->found : "";
}

}  // namespace

TEST_CASE("stated values: the program's value and the one it met, in either order") {
  CHECK(stated("error: w2_weight_packed dtype must be uint8, got torch.float32") ==
        "uint8 | torch.float32");
  CHECK(stated("error: scale layout: got torch.Size([64, 4]), expected (64, 2, 2).") ==
        "(64, 2, 2) | torch.Size([64, 4])");
  CHECK(stated("`time_embed_dim` should be divisible by 2, but is 17.") == "divisible by 2 | 17");
  CHECK(stated("Stale shm segment 'a': expected 16 bytes, got 128") == "16 bytes | 128");
  CHECK(stated("RuntimeError: checkpoint has 4, the model has 8") == "8 | 4");
}

TEST_CASE("stated values: a sentence that does not state both has none") {
  CHECK(stated("expected torch.bfloat16").empty());
  CHECK(stated("I forgot what was there").empty());
  CHECK(stated("expected 4, got 4").empty());
  CHECK(stated("").empty());
  CHECK(stated(std::string(10'000, 'x') + " expected 1, got 2").empty());
  CHECK(stated("expected , got ").empty());
}

TEST_CASE("stated values: a verb of the sentence stands before no value") {
  CHECK(stated("the required tensor lm_head.weight was not found in shard 3 of 4").empty());
  CHECK(stated("expected key 'a.b' was not found in the checkpoint").empty());
  CHECK(stated("requires 24 GiB, but only 16 GiB is currently available").empty());
  CHECK(stated("Expected model.safetensors to be loaded from /data/m").empty());
  CHECK(stated("expected 2 files, but loaded 3") == "2 files | 3");
  CHECK(stated("expected 2 shards, found 3") == "2 shards | 3");
}

TEST_CASE("explain: a message of one sentence has its two values") {
  ErrorText parsed = parse_error_text(
      "[rank3]: TypeError: FSDP sync_params must be a bool, got TrainingConfig for this model");
  REQUIRE(parsed.messages.size() == 1);
  CHECK(parsed.messages[0].expected == "bool");
  CHECK(parsed.messages[0].found == "TrainingConfig");
  // Shapes have fields of their own.
  parsed = parse_error_text(sentence({64}, {128}, "model.a.weight"));
  REQUIRE(parsed.messages.size() == 1);
  CHECK(parsed.messages[0].found.empty());
}

TEST_CASE("explain: the innermost file of a traceback shows which program speaks") {
  CHECK(program_of_message("file \"/x/site-packages/transformers/modeling_utils.py\", line 3\n"
                           "file \"/x/site-packages/vllm/model_executor/loader.py\", line 9") ==
        "vLLM");
  CHECK(program_of_message("llama_model_load: error loading model: x") == "llama.cpp");
  CHECK(program_of_message("keyerror: 'x'").empty());
  const std::string vllm = "file \"/x/site-packages/vllm/model_executor/loader.py\", line 9\n";
  CHECK(program_of_message(vllm + "no weights in /models/unsloth/llama-3") == "vLLM");
  CHECK(program_of_message(vllm + "oserror: no file in directory /ckpt/nemo/step_100") == "vLLM");
  CHECK(program_of_message("file /data/keras/model.safetensors is truncated").empty());
  CHECK(program_of_message("file \"/models/unsloth/run.py\", line 2\n" + vllm) == "vLLM");
  CHECK(program_of_message("file \"/opt/dist-packages/vllm/a.py\", line 2\nsee /models/vllm/x") ==
        "vLLM");
  ErrorText parsed = parse_error_text(
      "  File \"/x/site-packages/axolotl/utils/models.py\", line 9, in load\n"
      "KeyError: 'model.norm.weight'");
  REQUIRE(parsed.messages.size() == 1);
  CHECK(parsed.messages[0].speaker == "axolotl");
}

TEST_CASE("explain: a number of a shape that the terminal wrapped is one number") {
  ErrorText parsed = parse_error_text(
      "size mismatch for lm_head.weight: copying a param with shape torch.Size([320\n01, 40\n96]) "
      "from checkpoint, the shape in current model is torch.Size([32000, 4096]).");
  REQUIRE(parsed.messages.size() == 1);
  CHECK(parsed.messages[0].saved == Extents{32001, 4096});
}

TEST_CASE("explain: the words before a reason do not begin a sentence of their own") {
  check_sentences({
      {"HubError: Download interrupted. Last error: reset by peer", "", "download-broke",
       "network"},
  });
}
