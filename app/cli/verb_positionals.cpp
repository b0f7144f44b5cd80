#include <CLI/CLI.hpp>

#include "app/cli/verb_options.h"

namespace shw::cli {
namespace {

constexpr const char* kCheckpoint =
    "a folder, or its .metadata; RUN/@latest or RUN/@latest-complete: the newest step of a run";

}  // namespace

void add_positionals(CLI::App& verb, const std::string& name, Options& options,
                     std::vector<std::string>& words) {
  if (name == "explain") {
    verb.add_option(
        "TEXT", options.subject,
        "an error message or a whole traceback; without it, or for -, a pipe or file on "
        "stdin is read; or the id of a rule, as `check` prints it");
    verb.add_option("CHECKPOINT", options.checkpoint,
                    "the checkpoint that the message is about: its names and shapes are looked up");
  } else if (name == "demo") {
    verb.add_option("DIR", options.subject, "the folder to make")->required();
  } else if (name == "resume") {
    verb.add_option("DIR", options.checkpoint,
                    "the folder that was to be made, the half-made one, or the checkpoint that was "
                    "repaired in place")
        ->required();
  } else if (name == "upload") {
    verb.add_option("FOLDER", options.checkpoint, "a checkpoint, or any other folder")->required();
    verb.add_option("TO", options.upload, "s3://BUCKET/PREFIX or gs://BUCKET/PREFIX")->required();
  } else if (name == "diff") {
    verb.add_option("A", options.checkpoint, "a checkpoint")->required();
    verb.add_option("B", options.against, "the one that it is compared with")->required();
    verb.add_option("WORDS", words, "only names that fit: words, patterns and terms as of ls");
  } else if (name == "learn") {
    verb.add_option("A", options.checkpoint, "a checkpoint")->required();
    verb.add_option("B", options.against, "the same weights as another program saves them")
        ->required();
  } else if (name == "merge") {
    verb.add_option("BASE", options.checkpoint, "the model that the adapter was trained on")
        ->required();
    verb.add_option("ADAPTER", options.inputs,
                    "a folder with adapter_config.json; several are added one after the other")
        ->required();
  } else if (name == "average") {
    verb.add_option("A", options.checkpoint, "a checkpoint; what is not averaged is taken from it")
        ->required();
    verb.add_option("OTHERS", options.inputs, "more checkpoints of the same model")->required();
  } else if (name == "delta") {
    verb.add_option("BASE", options.checkpoint, "a checkpoint")->required();
    verb.add_option("RESULT", options.inputs, "the one that the delta is to make of it")
        ->required()
        ->expected(1);
  } else if (name == "apply") {
    verb.add_option("BASE", options.checkpoint, "the checkpoint that the delta was made from")
        ->required();
    verb.add_option("DELTA", options.inputs, "what `delta` wrote")->required()->expected(1);
  } else if (name == "extract") {
    verb.add_option("TUNED", options.checkpoint, "a model that was trained further")->required();
    verb.add_option("BASE", options.inputs, "the model that it was trained from")
        ->required()
        ->expected(1);
  } else if (name == "completion") {
    limit_to_choices(verb.add_option("FORM", options.subject,
                                     "for which shell, or the manual in one of two forms"),
                     {"bash", "zsh", "fish", "man", "markdown"})
        ->required();
  } else if (name == "gui") {
    verb.add_option("CHECKPOINT", options.checkpoint, kCheckpoint);
  } else {
    verb.add_option("CHECKPOINT", options.checkpoint, kCheckpoint)->required();
    if (name == "check")
      verb.add_option("MORE", options.inputs, "more checkpoints, one after the other");
    if (name == "show" || name == "map") {
      verb.add_option("FQN", options.subject, "the tensor; may come before CHECKPOINT too")
          ->required();
    }
    if (name == "stats" || name == "hash") {
      verb.add_option(
          "FQN", options.names,
          "tensors: a name, a shell pattern in quotes, or words and terms as of ls; default: all");
    }
    if (name == "ls" || name == "convert") {
      verb.add_option(
          "WORDS", words,
          "words that the name must hold, patterns such as *.bias, or terms: finding:RULE  "
          "dtype:bfloat16  rank:17  ndim:3  shape:[288,*,640]");
    }
  }
}

}  // namespace shw::cli
