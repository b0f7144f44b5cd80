// The only translation unit that includes CLI11 (10 s of compile time).
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>

#include "app/cli/options.h"
#include "core/base/byte_count.h"
#include "core/base/spelling.h"
#include "core/report/report.h"

namespace shw::cli {

const char* const kVersion = SHW_VERSION;

namespace {

struct VerbHelp {
  const char* name;
  const char* summary;
  const char* examples;
};

constexpr VerbHelp kVerbs[] = {
    {"info", "What it is: format, tensors, ranks, bytes",
     "shardwright info step_9000\n  shardwright info step_9000 --json"},
    {"ls", "List the tensors; words and terms narrow the list",
     "shardwright ls step_9000 experts down\n  shardwright ls step_9000 rank:17 dtype:bfloat16"},
    {"show", "One tensor: its tiles, their places, its values",
     "shardwright show step_9000 model.norm.weight\n"
     "  shardwright show step_9000 model.norm.weight --values --limit 8"},
    {"stats", "What its numbers are like: NaN, least, greatest, mean, histogram",
     "shardwright stats step_9000\n"
     "  shardwright stats step_9000 'model.layers.3.*' model.norm.weight --json"},
    {"map", "Draw which rank wrote which tile",
     "shardwright map step_9000 model.layers.3.moe.experts.down_proj.weight --spec spec.json"},
    {"check", "Say what is wrong, and why",
     "shardwright check step_9000 --spec spec.json\n"
     "  shardwright check step_9000 --against step_8000   another checkpoint says what is "
     "expected\n"
     "  shardwright check step_9000 --data        every byte, CRCs included"},
    {"diff", "Say how two checkpoints differ, in any formats and tiles",
     "shardwright diff step_8000 step_9000          names, shapes, dtypes, tiles\n"
     "  shardwright diff step_9000 hf --data          every value as well"},
    {"plan", "Say what a repair would do, and what it would lose",
     "shardwright plan step_9000 --spec spec.json\n"
     "  shardwright plan step_9000 --spec spec.json --json > plan.json\n"
     "  shardwright plan step_9000 --plan steps.json        what a plan of steps comes to"},
    {"repair", "Carry the repair out, into a new folder, with a certificate",
     "shardwright repair step_9000 --spec spec.json\n"
     "  shardwright repair step_9000 --plan plan.json --out step_9000-mended --yes\n"
     "  shardwright repair step_9000 --spec spec.json --in-place --yes"},
    {"reshard", "Cut every tensor anew, for another mesh",
     "shardwright reshard step_9000 --mesh dp=8,tp=2 --out step_9000-dp8-tp2\n"
     "  shardwright reshard step_9000 --mesh dp=8,tp=2 --placements placements.json\n"
     "      placements.json: {\"*.weight\": [\"Shard(0)\", \"Shard(1)\"], \"*\": [\"Shard(0)\", "
     "\"Replicate\"]}"},
    {"convert", "Write the same tensors in another format",
     "shardwright convert step_9000 --to safetensors --out hf\n"
     "  shardwright convert step_9000 --to torch --out whole          one file, model.pt\n"
     "  shardwright convert step_9000 --to safetensors --leave-out 'optimizer.*' --out hf\n"
     "  shardwright convert hf --to dcp --out step_0"},
    {"export-hdf5", "A small HDF5 file through which h5py reads every tensor where it lies",
     "shardwright export-hdf5 step_9000 --out step_9000.h5\n"
     "  shardwright export-hdf5 step_9000 --out step_9000.h5 --copy      what HDF5 cannot map "
     "comes along as a copy\n"
     "  h5py.File(\"step_9000.h5\", \"r\")[\"tensors\"][\"model.norm.weight\"][:8]"},
    {"verify", "Prove a repaired checkpoint against its certificate",
     "shardwright verify step_9000-repaired\n"
     "  shardwright verify step_9000-repaired --against step_9000    element by element, with what "
     "it was made of"},
    {"resume", "Go on with what was killed, or take it away",
     "shardwright resume step_9000-repaired\n"
     "  shardwright resume --roll-back step_9000-repaired"},
    {"undo", "Take an in-place repair back", "shardwright undo step_9000"},
    {"commit", "Keep an in-place repair for good", "shardwright commit step_9000"},
    {"report", "Write what was found: a page (HTML, Markdown), JSON, tables, or a form for CI",
     "shardwright report step_9000 --spec spec.json --out report.html\n"
     "  shardwright report step_9000 --format sarif --out report.sarif    for CI: sarif, junit, "
     "github\n"
     "  shardwright report step_9000 --data --format hdf5 --out report.h5\n"
     "  shardwright report step_9000 --against step_8000 --fill from:step_8000"},
    {"explain", "Say what an error message can mean, or teach a rule",
     "shardwright explain placement-axis-moved\n"
     "  shardwright explain \"Size mismatch between saved torch.Size([64]) and current: "
     "torch.Size([128]) for optimizer.state.0.exp_avg\" --world 4:2\n"
     "  shardwright explain - < traceback.txt\n"
     "  shardwright explain glu-split-local --rows 4,8 --tp 2     what a save will come to"},
    {"demo", "Make a broken checkpoint to try all this on", "shardwright demo demo"},
    {"gui", "Open the desktop", "shardwright gui step_9000 --spec spec.json"},
};

// Which options a verb takes, one letter each: s --spec, a --against, d --data and --depth, m
// --mesh, l --limit and --values, o --out, i --in-place and --yes, p --plan, f --fail-on, g
// --fill, v --data alone, n --baseline and --policy, e --format, w --world, r --rows and --tp, b
// --memory, k --roll-back, y --yes, c --placements, t --to and --shard-size, A --against of verify,
// h --integrity, H --paths and --copy.
struct VerbShape {
  const char* name;
  const char* options;
};
constexpr VerbShape kShapes[] = {
    {"info", ""},
    {"ls", "ds"},
    {"show", "l"},
    {"map", "s"},
    {"check", "sadmfn"},
    {"plan", "sadmgp"},
    {"repair", "sadmoipgbh"},
    {"verify", "A"},
    {"undo", ""},
    {"report", "sadmogne"},
    {"resume", "kb"},
    {"commit", ""},
    {"explain", "wr"},
    {"demo", ""},
    {"gui", "sam"},
    {"reshard", "sadmoycbh"},
    {"convert", "sadoytbh"},
    {"stats", ""},
    {"diff", "vb"},
    {"export-hdf5", "sadmoH"},
};

bool takes(std::string_view options, char letter) {
  return options.find(letter) != options.npos;
}

void add_positionals(CLI::App& verb, const std::string& name, Options& options,
                     std::vector<std::string>& words) {
  if (name == "explain") {
    verb.add_option("TEXT", options.subject,
                    "an error message or a whole traceback, - to read it from stdin; or the id of "
                    "a rule, as `check` prints it");
  } else if (name == "demo") {
    verb.add_option("DIR", options.subject, "the folder to make")->required();
  } else if (name == "resume") {
    verb.add_option("DIR", options.checkpoint,
                    "the folder that was to be made, the half-made one, or the checkpoint that was "
                    "repaired in place")
        ->required();
  } else if (name == "diff") {
    verb.add_option("A", options.checkpoint, "a checkpoint")->required();
    verb.add_option("B", options.against, "the one that it is held against")->required();
  } else if (name == "gui") {
    verb.add_option("CHECKPOINT", options.checkpoint, "a folder, or its .metadata");
  } else {
    verb.add_option("CHECKPOINT", options.checkpoint, "a folder, or its .metadata")->required();
    if (name == "show" || name == "map") {
      verb.add_option("FQN", options.subject, "the tensor; may stand before CHECKPOINT too")
          ->required();
    }
    if (name == "stats") {
      verb.add_option("FQN", options.names,
                      "tensors, by name or as a shell pattern in quotes; without: all");
    }
    if (name == "ls") {
      verb.add_option("WORDS", words,
                      "words that the name must hold, or terms: finding:RULE  "
                      "dtype:bfloat16  rank:17  ndim:3  shape:[288,*,640]");
    }
  }
}

// What else is known of the checkpoint, and how deep to look.
void add_looking_options(CLI::App& verb, std::string_view shape, Options& options) {
  if (takes(shape, 's')) {
    verb.add_option("--spec", options.spec, "what the model expects, a JSON file")
        ->type_name("FILE");
  }
  if (takes(shape, 'a')) {
    verb.add_option("--against", options.against,
                    "another checkpoint of the same model: what is expected")
        ->type_name("OTHER");
  }
  if (takes(shape, 'A')) {
    verb.add_option("--against", options.against,
                    "the checkpoint that it was made of: every element is held against it")
        ->type_name("SOURCE");
  }
  if (takes(shape, 'd')) {
    auto set_depth = [&options](const std::string& word) {
      for (Depth depth : {Depth::kMetadata, Depth::kHeaders, Depth::kData}) {
        if (word == name(depth)) options.depth = depth;
      }
    };
    verb.add_option_function<std::string>("--depth", set_depth,
                                          "how deep to look: metadata, headers, data")
        ->check(CLI::IsMember({"metadata", "headers", "data"}))
        ->type_name("DEPTH");
  }
  if (takes(shape, 'd') || takes(shape, 'v')) {
    verb.add_flag_callback(
        "--data", [&options] { options.depth = Depth::kData; }, "look at every byte");
  }
  if (takes(shape, 'm')) {
    verb.add_option("--mesh", options.mesh, "the device mesh, where it cannot be inferred")
        ->type_name("dp=4,tp=2");
  }
}

// Where a result goes, and in which form.
void add_writing_options(CLI::App& verb, std::string_view shape, Options& options) {
  if (takes(shape, 'l')) {
    verb.add_flag("--values", options.values, "print elements, row-major");
    verb.add_option("--limit", options.limit, "how many elements; 0 for all")
        ->type_name("N")
        ->capture_default_str();
  }
  if (takes(shape, 'o')) {
    verb.add_option("--out", options.out, "where the result goes")->type_name("PATH");
  }
  if (takes(shape, 'i')) {
    verb.add_flag("--in-place", options.in_place,
                  "replace .metadata in the checkpoint itself; `undo` takes it back");
  }
  if (takes(shape, 'i') || takes(shape, 'y')) verb.add_flag("-y,--yes", options.yes, "do not ask");
  if (takes(shape, 'c')) {
    verb.add_option("--placements", options.placements,
                    "placements by shell patterns of names; without: Shard(0) on the first axis")
        ->type_name("FILE");
  }
  if (takes(shape, 't')) {
    verb.add_option("--to", options.to, "the format to write")
        ->required()
        ->check(CLI::IsMember({"dcp", "safetensors", "torch"}))
        ->type_name("FORMAT");
    verb.add_option("--leave-out", options.leave_out,
                    "entries that do not come along, by shell patterns of names")
        ->type_name("PATTERN");
    verb.add_option("--shard-size", options.shard_bytes,
                    "safetensors: bytes of a file, 500M or 5G; without: 5G")
        ->transform(CLI::AsSizeValue(true))
        ->type_name("BYTES");
  }
  if (takes(shape, 'p')) {
    verb.add_option("--plan", options.plan, "a plan that `plan --json` printed, or one of steps")
        ->type_name("FILE");
  }
  if (takes(shape, 'g')) {
    verb.add_option("--fill", options.fill,
                    "what stands where elements are lost: zero, cast (masters from the model), "
                    "from:CHECKPOINT")
        ->type_name("FILL");
  }
  if (takes(shape, 'b')) {
    verb.add_option_function<std::string>(
            "--memory",
            [&options](const std::string& text) {
              auto bytes = parse_bytes(text);
              if (!bytes || *bytes < kLeastMemory)
                throw CLI::ValidationError("--memory", "is a number of bytes from 1M on");
              options.memory = *bytes;
            },
            "what may be taken of memory to move bytes: 256M, 4G; 1G without")
        ->type_name("BYTES");
  }
  if (takes(shape, 'h')) {
    verb.add_flag(
        "--integrity", options.integrity,
        "write integrity.json too: the SHA-256 of every file, as Megatron-LM verifies it");
  }
  if (takes(shape, 'H')) {
    verb.add_option("--paths", options.paths, "how the new file names those of the checkpoint")
        ->check(CLI::IsMember({"absolute", "relative"}))
        ->type_name("absolute|relative");
    verb.add_flag("--copy", options.copy, "copy what HDF5 cannot map in place");
  }
  if (takes(shape, 'k'))
    verb.add_flag("--roll-back", options.roll_back, "take away what is half made");
}

void add_options(CLI::App& verb, std::string_view shape, Options& options) {
  add_looking_options(verb, shape, options);
  add_writing_options(verb, shape, options);
  if (takes(shape, 'f')) {
    verb.add_option("--fail-on", options.fail_on, "exit 1 from this severity on")
        ->check(CLI::IsMember({"info", "warning", "error", "never"}))
        ->type_name("SEVERITY")
        ->capture_default_str();
  }
  if (takes(shape, 'n')) {
    verb.add_option("--baseline", options.baseline,
                    "a former answer of check --json: what it knows does not fail")
        ->type_name("FILE");
    verb.add_option("--policy", options.policy,
                    "what is required: coverage, finite, optimizer-complete")
        ->type_name("FILE");
  }
  if (takes(shape, 'e')) {
    verb.add_option("--format", options.format,
                    "html, md, json, sarif, junit, github or hdf5; without: by the ending of --out")
        ->check(CLI::IsMember({"html", "md", "json", "sarif", "junit", "github", "hdf5"}))
        ->type_name("FORMAT");
  }
  if (takes(shape, 'w')) {
    verb.add_option("--world", options.world,
                    "ranks of the run that saved and of the one that loads")
        ->type_name("4:2");
  }
  if (takes(shape, 'r')) {
    auto* rows = verb.add_option("--rows", options.rows,
                                 "glu-split-local: rows of a gated weight on each FSDP rank; says "
                                 "what saving it will come to");
    rows->type_name("4,8");
    verb.add_option("--tp", options.tensor_parallel, "tensor-parallel ranks of that run")
        ->type_name("N")
        ->needs(rows);
  }
  verb.add_flag("--json", options.json, "print JSON (schema shardwright/1)");
  verb.add_flag("-q,--quiet", options.quiet, "no talk on stderr, errors excepted");
  verb.add_option("--color", options.color, "auto, always, never")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->type_name("WHEN");
}

bool exists(const std::string& path) {
  std::error_code code;
  return std::filesystem::exists(path, code);
}

// `show FQN CHECKPOINT` too: whichever of the two is there on disk is the checkpoint.
void settle_order(Options& options) {
  if (options.verb != "show" && options.verb != "map") return;
  if (!exists(options.checkpoint) && exists(options.subject))
    std::swap(options.checkpoint, options.subject);
}

bool asks_for_json(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--json") return true;
  }
  return false;
}

EarlyExit usage_error(bool json, const std::string& message, const std::string& advice) {
  if (json) return {3, error_to_json(Error{ErrorKind::kUsage, message, {}, advice}), {}};
  return {3, {}, "shardwright: " + message + "\n" + advice + "\n"};
}

// The first word that is no option, if it is no verb.
std::optional<std::string> unknown_verb(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    std::string_view word = argv[i];
    if (word.starts_with("-")) continue;
    for (const VerbHelp& verb : kVerbs) {
      if (word == verb.name) return std::nullopt;
    }
    return std::string(word);
  }
  return std::nullopt;
}

EarlyExit refuse_verb(bool json, const std::string& word) {
  std::vector<std::string_view> names;
  for (const VerbHelp& verb : kVerbs) names.push_back(verb.name);
  std::string advice = did_you_mean_text(did_you_mean(word, names, 2));
  if (advice.empty()) advice = "`shardwright --help` lists the verbs.";
  return usage_error(json, "there is no verb \"" + word + "\"", advice);
}

// Words that begin with a dash stand before any other mistake: CLI11 would name the argument that
// it misses because of them.
struct Typed {
  std::string_view verb;
  std::vector<std::string_view> before, after;  // options before the verb, words after it
};

Typed typed_words(int argc, char** argv) {
  Typed typed;
  for (int i = 1; i < argc; ++i) {
    std::string_view word = argv[i];
    if (!typed.verb.empty())
      typed.after.push_back(word);
    else if (word.starts_with("-"))
      typed.before.push_back(word);
    else
      typed.verb = word;
  }
  return typed;
}

std::vector<std::string> option_names(const CLI::App& verb) {
  std::vector<std::string> names;
  for (const CLI::Option* option : verb.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

bool takes_value(const CLI::App& verb, std::string_view option) {
  for (const CLI::Option* other : verb.get_options()) {
    if (other->get_items_expected_max() > 0 && other->check_name(std::string(option))) return true;
  }
  return false;
}

// The first option that the verb does not know.
std::optional<EarlyExit> unknown_option(bool json, const CLI::App& verb, const Typed& typed) {
  std::vector<std::string> names = option_names(verb);
  std::string_view before;
  for (std::string_view word : typed.after) {
    bool is_value =
        before.starts_with("-") && before.find('=') == before.npos && takes_value(verb, before);
    before = word;
    if (word == "--") return std::nullopt;
    if (is_value || word.size() < 2 || word[0] != '-' || (word[1] >= '0' && word[1] <= '9'))
      continue;
    std::string_view name = word.substr(0, word.find('='));
    if (word[1] != '-') name = name.substr(0, 2);
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    std::vector<std::string_view> known(names.begin(), names.end());
    // Of a single letter every other one is as near.
    std::string advice =
        name.size() > 2 ? did_you_mean_text(did_you_mean(name, known, 2)) : std::string();
    if (advice.empty())
      advice = "`shardwright " + std::string(typed.verb) + " --help` shows what it takes.";
    return usage_error(json, std::string(typed.verb) + " has no option " + std::string(name),
                       advice);
  }
  return std::nullopt;
}

// What CLI11 found, in our words.
EarlyExit refuse(bool json, const CLI::ParseError& problem, const Typed& typed) {
  std::string verb(typed.verb), message = problem.what();
  std::string help = "`shardwright " + verb + " --help` shows how it is used.";
  std::size_t required = message.find(" is required");
  if (problem.get_name() == "RequiredError" && required != std::string::npos) {
    std::string what = message.substr(0, required);
    std::string missing = what == "CHECKPOINT" ? "CHECKPOINT: a folder, or its .metadata" : what;
    return usage_error(json, verb + " needs a " + missing, help);
  }
  if (problem.get_name() == "ExtrasError") {
    std::size_t colon = message.find(": ");
    std::string extra = colon == std::string::npos ? message : message.substr(colon + 2);
    return usage_error(json, verb + " does not know what to do with: " + extra, help);
  }
  return usage_error(json, verb + ": " + message, help);
}

void build(CLI::App& app, Options& options, std::vector<std::string>& words) {
  app.set_help_flag("-h,--help", "say this");
  app.require_subcommand(0, 1);
  for (const VerbHelp& help : kVerbs) {
    CLI::App* verb =
        app.add_subcommand(help.name, std::string(help.summary) + "\n\n  " + help.examples + "\n");
    add_positionals(*verb, help.name, options, words);
    for (const VerbShape& shape : kShapes) {
      if (std::string_view(shape.name) == help.name) add_options(*verb, shape.options, options);
    }
    verb->callback([&options, name = help.name] { options.verb = name; });
  }
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

}  // namespace

std::string version_text() {
  return std::string("shardwright ") + kVersion;
}

std::string help_text() {
  std::string text =
      "Opens a sharded checkpoint, shows which rank wrote which tile of which tensor, says in "
      "plain\n"
      "words what is wrong, and repairs it with proof.\n\n"
      "  shardwright demo demo                               a broken checkpoint to try it on\n"
      "  shardwright check demo/step_9000 --spec demo/spec.json\n"
      "  shardwright repair demo/step_9000 --spec demo/spec.json\n"
      "  shardwright verify demo/step_9000-repaired\n\n"
      "Verbs (shardwright VERB --help says more):\n";
  for (const VerbHelp& verb : kVerbs) {
    std::string name = verb.name;
    name.resize(12, ' ');
    text += "  " + name + verb.summary + "\n";
  }
  return text +
         "\nEvery verb takes --json, --quiet and --color; `shardwright --version` says which one "
         "this is.\n"
         "Exit codes: 0 clean, 1 findings at or above --fail-on, 2 could not decide or "
         "incomplete,\n"
         "3 usage, 4 the system refused to read or write.\n";
}

std::variant<Options, EarlyExit> parse_arguments(int argc, char** argv) {
  bool json = asks_for_json(argc, argv);
  std::string_view first = argc > 1 ? argv[1] : "--help";
  if (first == "-h" || first == "--help" || first == "help") return EarlyExit{0, help_text(), {}};
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) != "--version") continue;
    if (!json) return EarlyExit{0, version_text() + "\n", {}};
    return EarlyExit{
        0, std::string("{\"schema\": \"shardwright/1\", \"version\": \"") + kVersion + "\"}\n", {}};
  }
  if (auto word = unknown_verb(argc, argv)) return refuse_verb(json, *word);
  Typed typed = typed_words(argc, argv);
  if (typed.verb.empty())
    return usage_error(json, "a verb is missing", "`shardwright --help` lists the verbs.");
  if (!typed.before.empty() && typed.before.front() != "-h" && typed.before.front() != "--help")
    return usage_error(json, std::string(typed.before.front()) + " stands before the verb",
                       "Options come after it: shardwright " + std::string(typed.verb) + " " +
                           std::string(typed.before.front()) + " ...");

  Options options;
  std::vector<std::string> words;
  CLI::App app("", "shardwright");
  try {
    build(app, options, words);
    if (auto early = unknown_option(json, *app.get_subcommand(std::string(typed.verb)), typed))
      return *early;
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    for (const CLI::App* verb : app.get_subcommands()) return EarlyExit{0, verb->help(), {}};
    return EarlyExit{0, help_text(), {}};
  } catch (const CLI::ParseError& problem) {
    return refuse(json, problem, typed);
  }
  if (!words.empty()) options.subject = joined(words);
  settle_order(options);
  return options;
}

}  // namespace shw::cli
