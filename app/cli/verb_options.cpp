// The only translation units that include CLI11 (10 s of compile time): this one,
// verb_positionals.cpp and parse.cpp.
#include "app/cli/verb_options.h"

#include <CLI/CLI.hpp>
#include <array>
#include <charconv>

#include "app/cli/verb_table.h"
#include "core/base/byte_count.h"
#include "core/base/parse_text.h"
#include "core/verbs/written_as.h"

namespace shw::cli {
namespace {

// A larger number must be a mistake.
constexpr std::size_t kMaxThreads = 1024;

std::string joined_words(const std::vector<std::string>& words) {
  std::string names;
  for (const std::string& word : words) names += (names.empty() ? "" : "|") + word;
  return names;
}

// True if the digits fit 64 bits. CLI11 would clamp larger numbers.
bool fits_64_bits(std::string_view digits) {
  std::uint64_t number = 0;
  return std::from_chars(digits.data(), digits.data() + digits.size(), number).ec == std::errc{};
}

// Refuses sizes that CLI11 would misread before their unit: with a sign, 0x10, 2^64.
std::string whole_bytes(std::string& text) {
  const std::string_view digits =
      std::string_view(text).substr(0, text.find_first_not_of("0123456789"));
  const bool has_prefix = text.size() > 1 && (text[1] == 'x' || text[1] == 'X');
  if (digits.empty() || has_prefix) return text + " is not a number of bytes: 500M, 5G";
  return fits_64_bits(digits) ? std::string() : text + " is more than 2^64 - 1 bytes";
}

// Options for references, and for the depth of a check.
void add_reference_and_depth_options(CLI::App& verb, std::string_view shape, Options& options) {
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
                    "the checkpoint that it was made of: every element is compared with it")
        ->type_name("SOURCE");
  }
  if (takes(shape, 'd')) {
    auto set_depth = [&options](const std::string& word) {
      for (Depth depth : {Depth::kMetadata, Depth::kHeaders, Depth::kData}) {
        if (word == name(depth)) options.depth = depth;
      }
    };
    limit_to_choices(
        verb.add_option_function<std::string>("--depth", set_depth, "how deep to look"),
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
  if (takes(shape, 'q')) {
    verb.add_option("--ranks-per-node", options.ranks_per_node,
                    "names the nodes whose files are missing")
        ->check(CLI::Range(1u, verbs::kMaxRanksPerNode).description(""))
        ->type_name("N");
  }
}

// Options for the device that computes or counts elements.
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
  limit_to_choices(verb.add_option_function<std::string>(
                       "--on-device-error",
                       [&options](const std::string& text) {
                         options.device.on_error =
                             text == "stop" ? OnDeviceError::kStop : OnDeviceError::kCpu;
                       },
                       is_resumed ? "if a GPU fails: continue on the CPU, or stop for `resume`"
                                  : "if a GPU fails: continue on the CPU, or stop"),
                   {"cpu", "stop"});
}

// The option for the transport between processes.
void add_transport_option(CLI::App& verb, Options& options) {
  limit_to_choices(verb.add_option_function<std::string>(
                       "--transport",
                       [&options](const std::string& text) {
                         options.transport =
                             parse_tile_transport(text).value_or(TileTransport::kAuto);
                       },
                       "what carries tiles between processes; nccl: between their GPUs"),
                   {"auto", "mpi", "nccl"});
}

// The option for several processes in one run.
void add_processes_option(CLI::App& verb, Options& options) {
  limit_to_choices(
      verb.add_option("--processes", options.processes,
                      "mpi: processes started by mpirun or srun work together; default: alone"),
      {"mpi", "alone"});
}

// Options for printed elements.
void add_value_options(CLI::App& verb, std::string_view shape, Options& options) {
  if (takes(shape, 'l')) {
    verb.add_flag("--values", options.values, "print elements, row-major");
    verb.add_flag(
        "--places", options.places,
        "with --json: the runs of bytes that hold the elements of each chunk, as they are");
    verb.add_option("--limit", options.limit, "how many elements; 0 for all")
        ->check([](const std::string& text) {
          const bool is_number = text.find_first_not_of("0123456789") == std::string::npos;
          if (!is_number) return text + " is not a whole number of 0 or more";
          return fits_64_bits(text) ? std::string() : text + " is larger than 2^64 - 1";
        })
        ->type_name("N")
        ->capture_default_str();
  }
}

// Options for the place of a result.
void add_output_path_options(CLI::App& verb, std::string_view shape, Options& options) {
  if (takes(shape, 'o')) {
    verb.add_option("--out", options.out, "where the result goes")->type_name("PATH");
  }
  if (takes(shape, 'o') && takes(shape, 'u')) {
    verb.add_option("--upload", options.upload,
                    "also upload the finished result to this bucket; it must be empty there")
        ->type_name("s3://BUCKET/PREFIX");
  }
  if (takes(shape, 'i')) {
    verb.add_flag("--in-place", options.in_place,
                  "replace .metadata in the checkpoint itself; `undo` takes it back");
  }
  if (takes(shape, 'i') || takes(shape, 'y')) verb.add_flag("-y,--yes", options.yes, "do not ask");
}

// Options for the form of a result.
void add_output_format_options(CLI::App& verb, std::string_view shape, Options& options) {
  if (takes(shape, 'c') || takes(shape, 'p')) {
    verb.add_option("--placements", options.placements,
                    "placements by shell patterns of names; default: Shard(0) on the first axis")
        ->type_name("FILE");
  }
  if (takes(shape, 'V')) {
    verb.add_option("--as", options.hash_as_scheme,
                    "with the names and layouts of another program, through a map")
        ->type_name("hf|torch_dist|titan|fsdp_dtensor");
  }
  if (takes(shape, 't') || takes(shape, 'B')) {
    verb.add_option("--map", options.mapping.map,
                    "how names and layouts change: a file, or hf-megatron, hf-titan, "
                    "hf-fsdp_dtensor; default: by the names that are there")
        ->type_name("MAP");
    verb.add_option("--set", options.mapping.set,
                    "a value of the map that nothing else says: groups=8, model=llama, form=local")
        ->type_name("NAME=VALUE");
  }
  if (takes(shape, 'W')) {
    verb.add_option("--weights", options.weights,
                    "one per checkpoint, in their order: 0.5,0.3,0.2; default: all equal")
        ->type_name("X,Y,...");
  }
  if (takes(shape, 'R')) {
    verb.add_option("--rank", options.lora_rank, "of the matrices")
        ->check(CLI::Range(1, 4096).description(""))
        ->type_name("R")
        ->capture_default_str();
  }
  if (takes(shape, 't') || takes(shape, 'V')) {
    verb.add_option("--config", options.mapping.config,
                    "a folder with the model's config.json; its tokenizer is copied too")
        ->type_name("FOLDER");
  }
  if (takes(shape, 't')) {
    // A map given with --map may have other worlds, which run_convert() checks.
    verb.add_option("--to", options.to, "the format to write, or the program that is to load it")
        ->type_name(joined_words(verbs::convert_targets()));
    verb.add_option("--order", options.mapping.order,
                    "--to optimizer: names of the parameters in the model's order, one per line "
                    "(.txt), or a checkpoint that has them")
        ->type_name("FILE");
    verb.add_option("--leave-out", options.leave_out,
                    "entries that are not copied, by shell patterns of names")
        ->type_name("PATTERN");
    verb.add_flag("--weights-only", options.weights_only,
                  "tensors of the model alone: no optimizer, random states, counters");
    verb.add_option("--strip", options.strip,
                    "remove this prefix from names; wrappers: _orig_mod., module. and similar, "
                    "anywhere in the name")
        ->type_name("PREFIX|wrappers")
        ->expected(1)
        ->take_all();
    verb.add_option("--rename", options.rename,
                    "whole names that match get the name TO, with $1 for the first group")
        ->type_name("REGEX=TO")
        ->expected(1)
        ->take_all();
    verb.add_option("--dtype", options.dtype,
                    "what floating weights are cast to: bf16, fp16, fp32, fp64")
        ->type_name("DTYPE");
    verb.add_option("--shard-size", options.shard_bytes,
                    "safetensors: bytes of a file, 500M or 5G; default: 5G")
        // The default text would list all units.
        ->transform(CLI::AsSizeValue(true).description(""))
        // Validators run in reverse order: this one first.
        ->transform(CLI::Validator(whole_bytes, ""))
        ->type_name("BYTES");
    verb.add_flag("--round-trip", options.round_trip,
                  "convert the result back while it is read, and compare it with the source");
    verb.add_flag("--dequantise", options.dequantise,
                  "decode quantised weights into plain numbers");
    verb.add_option("--quantise", options.quantise,
                    "weights of linear modules in FP8 with a scale for each 128x128, or stacked "
                    "experts in MXFP4; fp8-block,64x64 has other blocks")
        ->type_name("fp8-block|fp8-block-ue8m0|mxfp4");
  }
}

// Options for the plan.
void add_plan_options(CLI::App& verb, std::string_view shape, Options& options) {
  if (takes(shape, 'p')) {
    verb.add_option("--plan", options.plan,
                    "a plan: what `plan --json` printed, or steps that you wrote")
        ->type_name("FILE");
  }
  if (takes(shape, 'p')) {
    verb.add_option("--then", options.then,
                    "what follows in the same pass: reshard:MESH, convert:FORMAT, cast:DTYPE, "
                    "drop:PATTERN, or a step as JSON; may be repeated")
        ->type_name("STEP")
        ->expected(1)
        ->take_all();
  }
  if (takes(shape, 'X')) {
    verb.add_flag("--explain", options.explain,
                  "also print the cost: bytes, files, memory, seconds");
  }
  if (takes(shape, 'g')) {
    verb.add_option("--fill", options.fill,
                    "what replaces lost elements; cast: masters from the model")
        ->type_name("zero|cast|from:CHECKPOINT");
  }
  if (takes(shape, 'g') && takes(shape, 'i')) {
    verb.add_flag("--accept-loss", options.accept_loss,
                  "exit 0 even if --fill replaces lost elements with zeros");
  }
}

// The option for the memory limit.
void add_memory_option(CLI::App& verb, std::string_view shape, Options& options) {
  if (takes(shape, 'b')) {
    verb.add_option_function<std::string>(
            "--memory",
            [&options](const std::string& text) {
              auto bytes = parse_bytes(text);
              if (!bytes || *bytes < kMinMemory)
                throw CLI::ValidationError("--memory", "is a number of bytes of at least 1M");
              options.memory = *bytes;
            },
            "memory limit for moving or comparing bytes: 256M, 4G; default: 1G")
        ->type_name("BYTES");
  }
}

// Options for files next to a result, and for references to its source.
void add_adjacent_file_options(CLI::App& verb, std::string_view shape, Options& options) {
  if (takes(shape, 'h')) {
    verb.add_flag(
        "--integrity", options.integrity,
        "write integrity.json too: the SHA-256 of every file, as Megatron-LM verifies it");
  }
  if (takes(shape, 'H')) {
    limit_to_choices(
        verb.add_option("--paths", options.paths, "how the new file names those of the checkpoint"),
        {"absolute", "relative"});
    verb.add_flag("--copy", options.copy, "copy tensors that HDF5 cannot map in place");
  }
}

// All options of verbs that write, in the order of --help.
void add_writing_options(CLI::App& verb, std::string_view shape, Options& options) {
  add_value_options(verb, shape, options);
  add_output_path_options(verb, shape, options);
  add_output_format_options(verb, shape, options);
  add_plan_options(verb, shape, options);
  add_memory_option(verb, shape, options);
  if (takes(shape, 'u') || takes(shape, 'U')) add_device_options(verb, takes(shape, 'u'), options);
  if (takes(shape, 'M')) add_processes_option(verb, options);
  if (takes(shape, 'u')) add_transport_option(verb, options);
  add_adjacent_file_options(verb, shape, options);
  if (takes(shape, 'Z'))
    verb.add_flag("--by-step", options.by_step,
                  "of a folder of steps: norm, change, NaN of each step, by module");
  if (takes(shape, 'E'))
    verb.add_option("--view", options.views,
                    "a place that was saved on the desktop (.shardwright), drawn on the page; "
                    "may be repeated; HTML only")
        ->type_name("FILE");
  if (takes(shape, 'P'))
    verb.add_flag("--plain", options.plain, "draw in ASCII and without colour");
  if (takes(shape, 'k'))
    verb.add_flag("--roll-back", options.roll_back, "remove the unfinished result");
}

// The group of an option in --help; options without a group come first.
struct OptionGroup {
  const char* title;
  std::array<std::string_view, 17> names;
};
constexpr std::array<OptionGroup, 4> kOptionGroups = {{
    {"What is expected, and how deep to look",
     {"spec", "against", "mesh", "ranks-per-node", "depth", "data"}},
    {"The result",
     {"out", "in-place", "yes", "to", "plan", "then", "fill", "placements", "leave-out",
      "weights-only", "strip", "rename", "dtype", "shard-size", "integrity", "paths", "copy"}},
    {"For CI", {"fail-on", "baseline", "policy", "ignore", "format"}},
    {"The machine", {"memory", "threads", "device", "on-device-error", "transport", "processes"}},
}};

void group_options(CLI::App& verb) {
  for (CLI::Option* option : verb.get_options()) {
    for (const OptionGroup& group : kOptionGroups) {
      for (std::string_view name : group.names) {
        if (!name.empty() && option->check_lname(std::string(name))) option->group(group.title);
      }
    }
  }
}

}  // namespace

CLI::Option* limit_to_choices(CLI::Option* option, std::vector<std::string> words) {
  const std::string names = joined_words(words);
  return option->check(CLI::IsMember(std::move(words)).description(""))->type_name(names);
}

void add_options(CLI::App& verb, std::string_view shape, Options& options) {
  add_reference_and_depth_options(verb, shape, options);
  add_writing_options(verb, shape, options);
  if (takes(shape, 'f')) {
    limit_to_choices(
        verb.add_option("--fail-on", options.fail_on, "exit 1 at this severity or above"),
        {"info", "warning", "error", "never"})
        ->capture_default_str();
  }
  if (takes(shape, 'n')) {
    verb.add_option("--baseline", options.baseline,
                    "an earlier output of check --json: findings in it do not fail")
        ->type_name("FILE");
    verb.add_option("--policy", options.policy,
                    "what is required: coverage, finite, optimizer-complete")
        ->type_name("FILE");
  }
  if (takes(shape, 'N')) {
    verb.add_option("--ignore", options.ignored,
                    "a rule whose findings are left out; may be repeated")
        ->type_name("RULE")
        ->expected(1)
        ->take_all();
  }
  if (takes(shape, 'T')) {
    const CLI::Validator is_tolerance(
        [](const std::string& said) {
          const auto number = parse_number<double>(said);
          return number && *number >= 0 ? std::string() : said + " is not a number of 0 or more";
        },
        "");
    verb.add_option("--atol", options.absolute,
                    "values no further apart than this plus --rtol times |B| are not a difference; "
                    "implies --data")
        ->check(is_tolerance)
        ->type_name("X");
    verb.add_option("--rtol", options.relative, "the part of --atol that grows with |B|")
        ->check(is_tolerance)
        ->type_name("X");
  }
  if (takes(shape, 'S')) {
    limit_to_choices(verb.add_option("--sort", options.sort, "the order; default: by name"),
                     {"name", "bytes", "tiles", "shape", "dtype", "recorded"});
    verb.add_flag("--reverse", options.reverse, "the other way round");
    verb.add_option("--columns", options.columns,
                    "columns: tensor,shape,dtype,tiles,bytes,writers,quantised; default: all")
        ->type_name("NAMES");
  }
  if (takes(shape, 'e')) {
    limit_to_choices(
        verb.add_option("--format", options.format, "the form; default: by the ending of --out"),
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
                                 "what a save would lose");
    rows->type_name("4,8");
    verb.add_option("--tp", options.tensor_parallel, "tensor-parallel ranks of that run")
        ->type_name("N")
        ->needs(rows);
  }
  verb.add_option(
          "--threads", options.threads,
          "threads of this process; default: one per core, shared with other processes of the run")
      ->check(CLI::Range(std::size_t{1}, kMaxThreads).description(""))
      ->type_name("N");
  verb.add_flag("--json", options.json, "print JSON (schema shardwright/2)");
  verb.add_flag("-q,--quiet", options.quiet, "print nothing on stderr but errors");
  limit_to_choices(verb.add_option("--color", options.color, "whether there is colour"),
                   {"auto", "always", "never"});
  group_options(verb);
}

}  // namespace shw::cli
