// The only translation unit that includes CLI11 (10 s of compile time).
#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <filesystem>

#include "app/cli/command_text.h"
#include "app/cli/options.h"
#include "app/cli/typed.h"
#include "app/cli/verb_table.h"
#include "core/base/byte_count.h"
#include "core/base/spelling.h"
#include "core/report/text_words.h"

namespace shw::cli {

namespace {

// One of these words, which help and completion name.
CLI::Option* take_one_of(CLI::Option* option, std::vector<std::string> words) {
  std::string names;
  for (const std::string& word : words) names += (names.empty() ? "" : "|") + word;
  return option->check(CLI::IsMember(std::move(words)).description(""))->type_name(names);
}

// Digits alone. CLI11 takes what is larger for the largest number there is.
bool fits_64_bits(std::string_view digits) {
  std::uint64_t number = 0;
  return std::from_chars(digits.data(), digits.data() + digits.size(), number).ec == std::errc{};
}

// What CLI11 would take for another number before it looks at the unit: a sign, 0x10, 2^64.
std::string whole_bytes(std::string& text) {
  const std::string_view digits =
      std::string_view(text).substr(0, text.find_first_not_of("0123456789"));
  const bool has_prefix = text.size() > 1 && (text[1] == 'x' || text[1] == 'X');
  if (digits.empty() || has_prefix) return text + " is no number of bytes: 500M, 5G";
  return fits_64_bits(digits) ? std::string() : text + " is more than 2^64 - 1 bytes";
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
  } else if (name == "completion") {
    take_one_of(verb.add_option("FORM", options.subject, "for which shell, or the man page"),
                {"bash", "zsh", "fish", "man"})
        ->required();
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
    take_one_of(verb.add_option_function<std::string>("--depth", set_depth, "how deep to look"),
                {"metadata", "headers", "data"});
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

// On what elements are made, or counted.
void add_device_options(CLI::App& verb, bool is_resumed, Options& options) {
  verb.add_option_function<std::string>(
          "--device",
          [&options](const std::string& text) {
            if (!parse_device(text, options.device))
              throw CLI::ValidationError("--device", "is auto, cpu, cuda or cuda:N");
          },
          is_resumed
              ? "what makes the elements; auto: a GPU where that is predicted to take less time"
              : "what counts the elements; auto: a GPU where that is predicted to take less time")
      ->type_name("auto|cpu|cuda[:N]");
  take_one_of(verb.add_option_function<std::string>(
                  "--on-device-error",
                  [&options](const std::string& text) {
                    options.device.on_error =
                        text == "stop" ? OnDeviceError::kStop : OnDeviceError::kCpu;
                  },
                  is_resumed ? "where a GPU fails: the CPU goes on, or stop so that `resume` can"
                             : "where a GPU fails: the CPU goes on, or stop"),
              {"cpu", "stop"});
}

// By what tiles travel between processes.
void add_transport_option(CLI::App& verb, Options& options) {
  take_one_of(verb.add_option_function<std::string>(
                  "--transport",
                  [&options](const std::string& text) {
                    options.transport = parse_tile_transport(text).value_or(TileTransport::kAuto);
                  },
                  "what carries tiles between processes; nccl: between their GPUs"),
              {"auto", "mpi", "nccl"});
}

// Of elements that are printed.
void add_value_options(CLI::App& verb, std::string_view shape, Options& options) {
  if (takes(shape, 'l')) {
    verb.add_flag("--values", options.values, "print elements, row-major");
    verb.add_option("--limit", options.limit, "how many elements; 0 for all")
        ->check([](const std::string& text) {
          const bool is_number = text.find_first_not_of("0123456789") == std::string::npos;
          if (!is_number) return text + " is no whole number from 0 on";
          return fits_64_bits(text) ? std::string() : text + " is larger than 2^64 - 1";
        })
        ->type_name("N")
        ->capture_default_str();
  }
}

// Where a result goes.
void add_place_options(CLI::App& verb, std::string_view shape, Options& options) {
  if (takes(shape, 'o')) {
    verb.add_option("--out", options.out, "where the result goes")->type_name("PATH");
  }
  if (takes(shape, 'i')) {
    verb.add_flag("--in-place", options.in_place,
                  "replace .metadata in the checkpoint itself; `undo` takes it back");
  }
  if (takes(shape, 'i') || takes(shape, 'y')) verb.add_flag("-y,--yes", options.yes, "do not ask");
}

// The form of another one than was opened.
void add_form_options(CLI::App& verb, std::string_view shape, Options& options) {
  if (takes(shape, 'c')) {
    verb.add_option("--placements", options.placements,
                    "placements by shell patterns of names; without: Shard(0) on the first axis")
        ->type_name("FILE");
  }
  if (takes(shape, 't')) {
    take_one_of(verb.add_option("--to", options.to, "the format to write"),
                {"dcp", "safetensors", "torch"})
        ->required();
    verb.add_option("--leave-out", options.leave_out,
                    "entries that do not come along, by shell patterns of names")
        ->type_name("PATTERN");
    verb.add_option("--shard-size", options.shard_bytes,
                    "safetensors: bytes of a file, 500M or 5G; without: 5G")
        ->transform(CLI::AsSizeValue(true).description(""))  // its own is a list of units
        ->transform(CLI::Validator(whole_bytes, ""))         // the last one is the first to look
        ->type_name("BYTES");
  }
}

// What is to be done.
void add_plan_options(CLI::App& verb, std::string_view shape, Options& options) {
  if (takes(shape, 'p')) {
    verb.add_option("--plan", options.plan, "a plan that `plan --json` printed, or one of steps")
        ->type_name("FILE");
  }
  if (takes(shape, 'X')) {
    verb.add_flag("--explain", options.explain,
                  "say what it takes too: bytes, files, memory, seconds");
  }
  if (takes(shape, 'g')) {
    verb.add_option("--fill", options.fill,
                    "what stands where elements are lost; cast: masters from the model")
        ->type_name("zero|cast|from:CHECKPOINT");
  }
}

// What it may take.
void add_memory_option(CLI::App& verb, std::string_view shape, Options& options) {
  if (takes(shape, 'b')) {
    verb.add_option_function<std::string>(
            "--memory",
            [&options](const std::string& text) {
              auto bytes = parse_bytes(text);
              if (!bytes || *bytes < kLeastMemory)
                throw CLI::ValidationError("--memory", "is a number of bytes from 1M on");
              options.memory = *bytes;
            },
            "what may be taken of memory to move or compare bytes: 256M, 4G; 1G without")
        ->type_name("BYTES");
  }
}

// What stands beside a result, and how it refers to what it was made of.
void add_beside_options(CLI::App& verb, std::string_view shape, Options& options) {
  if (takes(shape, 'h')) {
    verb.add_flag(
        "--integrity", options.integrity,
        "write integrity.json too: the SHA-256 of every file, as Megatron-LM verifies it");
  }
  if (takes(shape, 'H')) {
    take_one_of(
        verb.add_option("--paths", options.paths, "how the new file names those of the checkpoint"),
        {"absolute", "relative"});
    verb.add_flag("--copy", options.copy, "copy what HDF5 cannot map in place");
  }
}

// What is made, of what, and how. In the order in which --help tells them.
void add_writing_options(CLI::App& verb, std::string_view shape, Options& options) {
  add_value_options(verb, shape, options);
  add_place_options(verb, shape, options);
  add_form_options(verb, shape, options);
  add_plan_options(verb, shape, options);
  add_memory_option(verb, shape, options);
  if (takes(shape, 'u') || takes(shape, 'U')) add_device_options(verb, takes(shape, 'u'), options);
  if (takes(shape, 'u')) add_transport_option(verb, options);
  add_beside_options(verb, shape, options);
  if (takes(shape, 'P'))
    verb.add_flag("--plain", options.plain, "draw in ASCII and without colour");
  if (takes(shape, 'k'))
    verb.add_flag("--roll-back", options.roll_back, "take away what is half made");
}

void add_options(CLI::App& verb, std::string_view shape, Options& options) {
  add_looking_options(verb, shape, options);
  add_writing_options(verb, shape, options);
  if (takes(shape, 'f')) {
    take_one_of(verb.add_option("--fail-on", options.fail_on, "exit 1 from this severity on"),
                {"info", "warning", "error", "never"})
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
    take_one_of(
        verb.add_option("--format", options.format, "the form; without: by the ending of --out"),
        {"html", "md", "json", "sarif", "junit", "github", "hdf5"});
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
  take_one_of(verb.add_option("--color", options.color, "whether there is colour"),
              {"auto", "always", "never"});
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

// "FQN: the tensor", as --help says it.
std::string with_description(const CLI::App& verb, const std::string& name) {
  const CLI::Option* option = verb.get_option_no_throw(name);
  const std::string said = option == nullptr ? std::string() : option->get_description();
  return said.empty() ? name : name + ": " + said;
}

// What CLI11 found, in our words.
EarlyExit refuse(bool json, const CLI::ParseError& problem, const CLI::App& app,
                 const Typed& typed) {
  std::string verb(typed.verb), message = problem.what();
  std::string help = "`shardwright " + verb + " --help` shows how it is used.";
  std::size_t required = message.find(" is required");
  if (problem.get_name() == "RequiredError" && required != std::string::npos) {
    const std::string missing =
        with_description(*app.get_subcommand(verb), message.substr(0, required));
    return usage_error(json, verb + " needs a " + missing, help);
  }
  if (problem.get_name() == "ExtrasError") {
    std::size_t colon = message.find(": ");
    std::string extra = colon == std::string::npos ? message : message.substr(colon + 2);
    return usage_error(json, verb + " does not know what to do with: " + extra, help);
  }
  return usage_error(json, verb + ": " + message, help);
}

// What --help is as wide as.
constexpr std::size_t kColumns = 80;

// Paragraphs, each with an empty line before it.
std::string paragraphs(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    std::size_t end = text.find("\n\n");
    out += "\n" + wrapped(std::string(text.substr(0, end)), 0, kColumns) + "\n";
    text.remove_prefix(end == text.npos ? text.size() : end + 2);
  }
  return out;
}

// Options in lines that fit a terminal.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    std::string name = "  " + make_option_name(option, is_positional) + make_option_opts(option);
    std::string about = make_option_desc(option);
    if (about.empty()) return name + "\n";
    about = wrapped(about, column_width_, kColumns);
    if (name.size() >= column_width_) return name + "\n" + about + "\n";
    return name + about.substr(name.size()) + "\n";
  }
};

void build(CLI::App& app, Options& options, std::vector<std::string>& words) {
  app.formatter(std::make_shared<HelpFormatter>());
  app.set_help_flag("-h,--help", "say this");
  app.require_subcommand(0, 1);
  for (const VerbRow& help : verb_table()) {
    CLI::App* verb =
        app.add_subcommand(help.name, std::string(help.summary) + "\n" + paragraphs(help.details) +
                                          "\n  " + help.examples + "\n");
    add_positionals(*verb, help.name, options, words);
    // What it prints is for a shell, and for nobody else.
    if (help.name != std::string_view("completion")) add_options(*verb, help.options, options);
    verb->callback([&options, name = help.name] { options.verb = name; });
  }
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

ArgumentUse use_of(const CLI::Option& option) {
  ArgumentUse use;
  use.text = option.get_description();
  use.is_required = option.get_required();
  bool is_place = option.get_lnames().empty() && option.get_snames().empty();
  if (is_place) {
    use.names = {option.get_name()};
    use.repeats = option.get_items_expected_max() > 1;
    if (option.get_type_name().find('|') != std::string::npos) use.value = option.get_type_name();
    return use;
  }
  for (const std::string& name : option.get_snames()) use.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) use.names.push_back("--" + name);
  if (option.get_items_expected_max() > 0) use.value = option.get_type_name();
  return use;
}

}  // namespace

std::vector<VerbUse> verb_uses() {
  Options options;
  std::vector<std::string> words;
  CLI::App app("", "shardwright");
  build(app, options, words);
  std::vector<VerbUse> uses;
  for (const VerbRow& row : verb_table()) {
    VerbUse use{row.name, row.summary, row.details, row.examples, {}, {}};
    for (const CLI::Option* option : app.get_subcommand(row.name)->get_options()) {
      ArgumentUse argument = use_of(*option);
      bool is_place = !argument.names.front().starts_with("-");
      (is_place ? use.places : use.options).push_back(std::move(argument));
    }
    uses.push_back(std::move(use));
  }
  return uses;
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
    return refuse(json, problem, app, typed);
  }
  if (!words.empty()) options.subject = joined(words);
  if (options.verb == "completion") return EarlyExit{0, *command_text(options.subject), {}};
  settle_order(options);
  return options;
}

}  // namespace shw::cli
