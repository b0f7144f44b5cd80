// Sentences that say which file, scale or state is not there, and names that show a wrapper.
#include <doctest/doctest.h>

#include <string>

#include "core/explain/support.h"

using namespace shw;
using namespace shw::test;

namespace {

std::string name_in(const std::string& text) {
  const ErrorText parsed = parse_error_text(text);
  return parsed.messages.empty() ? "" : parsed.messages[0].name;
}

}  // namespace

TEST_CASE("explain: a file that a sentence calls missing is told by what such files hold") {
  check_sentences({
      {"ValueError: no settings: missing train_args.yaml in /ckpt/step_3", "", "settings-file-gone",
       "missing-part"},
      {"RuntimeError: unet has no file named model.fp16.safetensors", "", "weights-file-gone",
       "other-name"},
      {"ValueError: nothing to restore at out/step-0; expected .metadata", "", "index-file-gone",
       "unfinished-save"},
      {"OSError: part_0007.distcp was not found", "", "weights-file-gone", "other-name"},
  });
  CHECK(name_in("ValueError: no settings: missing train_args.yaml in /ckpt/step_3") ==
        "train_args.yaml");
}

TEST_CASE("explain: a key that a file lacks is not the file") {
  for (const char* text : {"ValueError: missing field 'hidden' in params.json",
                           "ValueError: params.json was read, but its step is negative"})
    CHECK(name_in(text) != "params.json");
}

TEST_CASE("explain: missing scales and optimizer states are told from missing tensors") {
  check_sentences({
      {"ValueError: static mode needs weight_global_scale of 'model.layers.2.mlp.up_proj', not "
       "found",
       "", "scale-gone", "quantised"},
      {"RuntimeError: model.layers.2.mlp.up_proj.weight not found in the optimizer state", "",
       "states-gone", "no-optimizer-state"},
      {"RuntimeError: model.layers.2.mlp.up_proj.weight not found", "", "missing-key", "renamed"},
  });
}

TEST_CASE("explain: a wrapper in a name is told for messages of converters too") {
  const auto first_title = [](const std::string& text) {
    const Explanation explanation = explain(text);
    return explanation.hypotheses.empty() ? "" : explanation.hypotheses[0].title;
  };
  CHECK(first_title("ValueError: Can not map tensor 'model.layers.0.q_proj.base_layer.weight'")
            .find("adapter unmerged") != std::string::npos);
  CHECK(first_title("ValueError: Can not map tensor '_orig_mod.model.layers.0.q_proj.weight'")
            .find("torch.compile") != std::string::npos);
  CHECK(first_title("ValueError: Can not map tensor 'model.layers.0.odd_proj.weight'")
            .find("converter") != std::string::npos);
}

TEST_CASE("explain: an FSDP1 row that is missing speaks of the model, not of the file") {
  const std::string row = "\"layers.0._fsdp_wrapped_module._flat_param\"";
  CHECK(first(explain("Missing key(s) in state_dict: " + row)) == "flat-shard request");
  CHECK(first(explain("Unexpected key(s) in state_dict: " + row)) == "flat-shard checkpoint");
}

TEST_CASE("explain: the state of a schedule that is missing is not a renamed tensor") {
  CHECK(first(explain("Missing key in checkpoint state_dict: lr_scheduler.base_lrs.")) ==
        "no-run-state request");
  CHECK(first(explain("Missing key in checkpoint state_dict: layers.0.base.weight.")) ==
        "renamed either");
}

TEST_CASE("explain: a class that a pickle imports is told from a package of the program") {
  CHECK(first(explain("    return super().find_class(mod_name, name)\n"
                      "ModuleNotFoundError: No module named 'nets.blocks'")) ==
        "module-not-here request");
  CHECK(
      parse_error_text("ModuleNotFoundError: No module named 'nvdiffrast'").messages[0].kind->id ==
      "module-not-here");
}

TEST_CASE("explain: another program's meaning of a message comes after the speaker's own") {
  const std::string key = "KeyError: 'model.layers.1.mlp.fc9.weight'\n";
  const auto with_place = [&](const std::string& package) {
    return first(
        explain("File \"/x/site-packages/" + package + "/loader.py\", line 3, in f\n" + key));
  };
  CHECK(with_place("vllm") == "renamed checkpoint");
  CHECK(with_place("nemo") == "missing-key checkpoint");
}

TEST_CASE("explain: TorchScript and torch.save are told apart") {
  check_sentences({
      {"RuntimeError: PytorchStreamReader failed locating file constants.pkl: file not found",
       "torch", "not-torchscript", "other-format"},
      {"RuntimeError: Unknown builtin op: mylib::pool.", "torch", "torchscript-op",
       "older-program"},
  });
}

TEST_CASE("explain: another adapter than peft's is not an adapter of the model") {
  const ErrorText parsed =
      parse_error_text("AssertionError: sd_adapter is required for to_hf=True");
  if (!parsed.messages.empty()) CHECK(parsed.messages[0].kind->id != "adapter-differs");
}

TEST_CASE("explain: what decodes a quantised weight, and what a program takes, is told") {
  check_sentences({
      {"RuntimeError: Cannot find the config file for gptq", "", "quantiser-config-missing",
       "missing-part"},
      {"ValueError: no packed weights for block 3", "", "quantised-part-missing", "quantised"},
      {"NotImplementedError: DoRA adapters are not supported here", "", "dora-not-taken",
       "adapter"},
      {"ValueError: base model is in 4bit, merge needs the original weights", "",
       "merge-needs-16-bits", "quantised"},
      {"ValueError: checkpoint_format v1 format, convert the qzeros", "", "gptq-format",
       "quantised"},
      {"OSError: shard 3: file full of zeros", "", "never-written", "short-file"},
  });
}

TEST_CASE("explain: runs that are resumed are told by what they resume") {
  check_sentences({
      {"KeyError: 'initial_lr'", "torch", "initial-lr", "call-order"},
      {"KeyError: 151643", "", "token-number", "vocabulary"},
      {"KeyError: 17", "", "state-number", "optimizer-order"},
      {"KeyError: 'output.weight'", "", "tied-key", "tied"},
      {"AssertionError: tp_size in meta.json is 4 and current tp is 2", "", "other-world",
       "other-world-size"},
      {"ValueError: all wrong, only found keys starting otherwise: keys start with 'net.'", "",
       "names-with-prefix", "renamed"},
  });
}
