// Finding a loader's messages in pasted text.
#include "core/explain/error_text.h"

#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

#include "core/explain/explain.h"
#include "core/explain/message_kinds.h"
#include "core/explain/support.h"

using namespace shw;
using namespace shw::test;

namespace {}  // namespace

TEST_CASE("the shapes are found in every loader's words") {
  const Extents saved = {288, 4096}, current = {288, 8192};
  const std::vector<std::string> texts = {
      "Size mismatch between saved torch.Size([288, 4096]) and current: torch.Size([288, 8192]) "
      "for "
      "a.b.weight",
      "ValueError: Size mismatch between saved torch.Size([288,4096]) and current: "
      "torch.Size([288,8192]) for a.b.weight.",
      "Global shape mismatch for loaded (288, 4096) and expected (288, 8192) tensor for key "
      "a.b.weight",
      "megatron.core.dist_checkpointing.core.CheckpointingException: Global shape mismatch for "
      "loaded (torch.Size([288, 4096])) and expected ((288, 8192)) tensor for key a.b.weight",
      "RuntimeError: Error(s) in loading state_dict for Model:\n\tsize mismatch for a.b.weight: "
      "copying a param with shape torch.Size([288, 4096]) from checkpoint, the shape in current "
      "model is torch.Size([288, 8192]).",
      "- a.b.weight: found shape torch.Size([288, 4096]) in the checkpoint and torch.Size([288, "
      "8192]) in the model instantiated",
      "saved [288, 4096]   expected [288, 8192] for a.b.weight",
      "SAVED [288, 4096] CURRENT [288, 8192] FOR a.b.weight",
      "\x1b[31mSize mismatch\x1b[0m between saved torch.Size([288,\n 4096]) and\ncurrent: "
      "torch.Size([288, 8192])\nfor a.b.weight\nmore words",
      "[rank3]: Size mismatch between saved torch.Size([288, 4096])\n[rank3]: and current: "
      "torch.Size([288, 8192]) for a.b.weight",
      "2026-11-21 03:14:15,123 Size mismatch between saved torch.Size([288, 4096])\n2026-11-21 "
      "03:14:15,124 and current: torch.Size([288, 8192]) for a.b.weight",
      " 3: Size mismatch between saved torch.Size([288, 4096]) and\n 3: current: torch.Size([288, "
      "8192]) for a.b.weight",
      "[default0]:Size mismatch between saved torch.Si\nze([288, 4096]) and curre\nnt: "
      "torch.Size([288, 8192]) for a.b.weight",
      "{\"log\": \"Error(s) in loading state_dict:\\n\\tsize mismatch for a.b.weight: copying a "
      "param with shape torch.Size([288, 4096]) from checkpoint, the shape in current model is "
      "torch.Size([288, 8192]).\\n\"}",
      "Trying to set a tensor of shape torch.Size([288, 4096]) in \"a.b.weight\" (which has shape "
      "torch.Size([288, 8192])), this looks incorrect.",
      "a.b.weight | MISMATCH | Reinit due to size mismatch ckpt: torch.Size([288, 4096]) vs "
      "model:torch.Size([288, 8192])",
      "\u2502 ValueError: Size mismatch between saved torch.Size([288, 4096]) and current: \u2502\n"
      "\u2502 torch.Size([288, 8192]) for a.b.weight \u2502",
      "for `a.b.weight`? no: size mismatch between saved (288, 4096,) and current: (288, 8192,) "
      "for 'a.b.weight'",
  };
  for (const std::string& text : texts) {
    CAPTURE(text);
    ErrorText parsed = parse_error_text(text);
    REQUIRE(parsed.messages.size() == 1);
    CHECK(parsed.messages[0].saved == saved);
    CHECK(parsed.messages[0].current == current);
    CHECK(parsed.messages[0].name == "a.b.weight");
  }
}

TEST_CASE("what no loader said is not understood") {
  for (const std::string text :
       {"", " ", "coverage-gap", "saved", "saved [", "saved [1, 2", "saved [1] current",
        "saved [-1] and current: [2] for x", "saved [1.5] and current: [2]",
        "saved [99999999999999999999] and current: [2] for x", "saved [1) and current: (2]",
        "No such file or directory: '/etc/passwd'", "431 Request Header Too Large", "KeyError",
        "missing keys: 3 of 7", "trained with a different world size of dreams",
        "saved [a] and current: [b] for c", "between saved [[1], [2]] and current: [3]"}) {
    CAPTURE(text);
    Explanation explanation = explain(text);
    CHECK(explanation.parsed.messages.empty());
    CHECK(explanation.hypotheses.empty());
  }
}

TEST_CASE("hostile text does no harm, and huge text is read from its end") {
  const std::string good = sentence({64}, {128}, "optimizer.state.0.exp_avg");
  const std::vector<std::string> pieces = {"saved",
                                           "current:",
                                           "torch.Size([",
                                           "[",
                                           "(",
                                           ")",
                                           "]",
                                           ",",
                                           " ",
                                           "\n",
                                           "0",
                                           "64",
                                           "9223372036854775807",
                                           "99999999999999999999",
                                           "-1",
                                           "for",
                                           "\x1b[",
                                           "\x1b",
                                           "[rank1]:",
                                           "size mismatch for ",
                                           "copying a param with shape",
                                           "current model",
                                           "'",
                                           "\"",
                                           "\xff\xfe",
                                           "Missing key(s) in state_dict: ",
                                           "MetadataIndex(fqn='",
                                           "no such file or directory:",
                                           ".distcp",
                                           "_w.exp_avg",
                                           "optimizer.state.",
                                           "expert",
                                           "embed",
                                           good,
                                           std::string(1, '\0')};
  Dice dice;
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    for (std::size_t n = dice.below(24); n > 0; --n) text += pieces[dice.below(pieces.size())];
    Explanation explanation =
        explain(text, dice.below(2) == 0 ? std::nullopt : std::optional(WorldSizes{4, 2}));
    for (const Hypothesis& one : explanation.hypotheses) CHECK(one.confidence <= 1);
  }
  std::string most = "9223372036854775807";
  std::string largest = "saved [" + most + ", 1] and current: [1, " + most + "] for experts.w";
  CHECK_FALSE(explain(largest, WorldSizes{9999999, 9999999}).hypotheses.empty());
  CHECK_FALSE(explain("saved [" + most + "] and current: [9223372036854775806] for x",
                      WorldSizes{9999999, 1})
                  .hypotheses.empty());
  std::string huge(3 * kMaxErrorText, '(');
  CHECK(explain(huge).hypotheses.empty());
  Explanation at_end = explain(huge + " " + good);
  CHECK(at_end.parsed.cut);
  CHECK(at_end.parsed.messages.size() == 1);
  std::string many;
  for (int i = 0; i < 5000; ++i) many += sentence({4}, {8}, "x" + std::to_string(i)) + "\n";
  Explanation crowd = explain(many);
  CHECK(crowd.parsed.messages.size() == kMaxMessages);
  CHECK(crowd.parsed.left_out == 5000 - kMaxMessages);
}

TEST_CASE("worlds are two positive numbers") {
  CHECK(parse_world_sizes("4:2")->save == 4);
  CHECK(parse_world_sizes("4:2")->load == 2);
  for (const std::string text :
       {"", "4", ":", "4:", ":2", "0:2", "4:0", "-4:2", "4:2:1", "a:b", "99999999:1", "4 : 2"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_world_sizes(text).has_value());
  }
}

TEST_CASE("a list of names that the terminal cut off gives the names that are whole") {
  ErrorText parsed =
      parse_error_text("Missing key(s) in state_dict: \"a.b\", \"a.\nc\", \"a.d\", ...");
  REQUIRE(parsed.messages.size() == 3);
  CHECK(parsed.messages[1].name == "a.c");
  CHECK(parsed.messages[2].name == "a.d");
  parsed = parse_error_text("Unexpected key(s) in state_dict: \"a.b\", \"a.c");
  CHECK(parsed.messages[0].name == "a.b");
}

TEST_CASE("a list of names that was cut off says that names differ") {
  CHECK(first(explain("Missing key(s) in state_dict: ")) == "renamed either");
}

TEST_CASE("the line of the program that made a message is not a message") {
  ErrorText parsed = parse_error_text(
      "    raise RuntimeError(f\"Missing key in checkpoint state_dict: {fqn}.\")\n"
      "RuntimeError: Missing key in checkpoint state_dict: dataloader.dp_rank_15.");
  REQUIRE(parsed.messages.size() == 1);
  CHECK(parsed.messages[0].name == "dataloader.dp_rank_15");
  parsed = parse_error_text("    raise X(f'{checkpoint_dir} is not a distributed checkpoint')");
  CHECK(parsed.messages.empty());
  parsed =
      parse_error_text("Key | Status |\nmodel.l.{0, 1, 2}.w | MISSING |\nm.{0...31}.v | MISSING |");
  REQUIRE(parsed.messages.size() == 2);
  CHECK(parsed.messages[0].name == "model.l.{0, 1, 2}.w");
  CHECK(parsed.messages[1].name == "m.{0...31}.v");
}

TEST_CASE("a message without its name is silent next to the same one with it") {
  ErrorText parsed = parse_error_text(
      "Cannot find global shape metadata for N-D flattened tensor ShardedTensor(key='a.b', x)\n"
      "KeyError: 'nd_reformulated_orig_global_shape'");
  REQUIRE(parsed.messages.size() == 1);
  CHECK(parsed.messages[0].name == "a.b");
}

TEST_CASE("explain: a key alone at the end of a server's line is read as a KeyError") {
  for (const char* text :
       {"ERROR 12-09 00:49:29 engine.py:366] 'layers.0.mlp.up_proj.weight.absmax'",
        "'layers.0.mlp.up_proj.weight.absmax'"}) {
    const ErrorText read = parse_error_text(text);
    REQUIRE(read.messages.size() == 1);
    CHECK(read.messages[0].name == "layers.0.mlp.up_proj.weight.absmax");
  }
  CHECK(parse_error_text("it said 'layers.0.mlp.weight'").messages.empty());
}

TEST_CASE("explain: the class of an exception is not a tensor") {
  for (const char* text :
       {"megatron.core.dist_checkpointing.core.CheckpointingException: Unexpected keys (not "
        "requested by the model): ['decoder.final_norm.weight']",
        "tensorflow.python.framework.errors_impl.NotFoundError: Key decoder.final_norm.weight not "
        "found in checkpoint"}) {
    const ErrorText read = parse_error_text(text);
    REQUIRE(read.messages.size() == 1);
    CHECK(read.messages[0].name == "decoder.final_norm.weight");
  }
}
