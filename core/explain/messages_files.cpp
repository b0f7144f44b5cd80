// Messages about missing files and folders.
#include "core/explain/message_kinds.h"
#include "core/rules/names/name_rules.h"
#include "core/rules/reference/content_rules.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

bool ends_with_any(std::string_view name, std::initializer_list<std::string_view> ends) {
  for (std::string_view end : ends) {
    if (name.ends_with(end)) return true;
  }
  return false;
}

// ".metadata" and "__3.metadata", which DCP writes last, for all ranks or one.
bool is_metadata(const ErrorMessage& message) {
  return message.name.ends_with(".metadata");
}
bool is_index(const ErrorMessage& message) {
  return ends_with_any(message.name, {".index.json", "metadata.json", "common.pt", "/latest",
                                      "latest_checkpointed_iteration.txt"});
}
bool is_data(const ErrorMessage& message) {
  return ends_with_any(message.name, {".distcp", ".safetensors", ".pt", ".pth", ".bin", ".ckpt"});
}

constexpr Interpretation kWrongPath = {
    .id = "wrong-path",
    .wrong = kLoader,
    .weight = 0.35,
    .title = "the path is not the checkpoint's folder",
    .text =
        "AutoModel keeps model/ and optim/ apart, Megatron iter_N/, accelerate "
        "pytorch_model_fsdp_0/, DeepSpeed a folder a tag: a loader that is given the folder "
        "above, or one below, finds nothing.",
    .decide = "What is in the folder: the tool names the format, or says why it cannot.",
    .command = "shardwright info CHECKPOINT"};

constexpr Interpretation kLocalDisks = {
    .rule = &kMissingFile,
    .wrong = kDisk,
    .weight = 0.3,
    .title = "the file is on another node's local disk",
    .text =
        "Without a shared file system each node keeps what its own ranks wrote, and .metadata "
        "is on the node of rank 0 only. Nothing is lost: gather the folders into one.",
    .decide = "The same path on the other nodes of the run that saved.",
    .command = "shardwright check CHECKPOINT"};

constexpr Interpretation kFileGone = {
    .rule = &kMissingFile,
    .wrong = kDisk,
    .weight = 0.7,
    .title = "a data file is not there",
    .text =
        "A copy that was cut off, a clean-up that took too much, or a node's local disk that "
        "was never collected.",
    .decide =
        "Whether the file is where the checkpoint was written; and whether the path is a "
        "folder of the right step."};

constexpr Interpretation kNotAllSaved = {
    .rule = &kMissingFile,
    .wrong = kDisk,
    .weight = 0.65,
    .title = "not all ranks' files are there",
    .text =
        "A rank did not finish its save, a file was not copied, or a save with another number "
        "of ranks went into the same folder and left files of both.",
    .decide = "How many ranks saved, and the times of the files: are they of one save?"};

constexpr Interpretation kNoIndex = {
    .id = "unfinished-save",
    .rule = &kMissingFile,
    .wrong = kDisk,
    .weight = 0.5,
    .title = "the file that says what belongs together is not there",
    .text =
        "Indexes, common.pt and the file that names the latest step are written at the end of "
        "a save: without them it did not end, or they were not copied. The tensors may all be "
        "there.",
    .decide = "What is in the folder; and whether an earlier step has the file."};

constexpr MessageKind kFileMessages[] = {
    {.id = "no-variant",
     .example = "does not appear to have a file named FILE but there is a file without the variant",
     .patterns = {"does not appear to have a file named <name> but there is a file without the "
                  "variant"},
     .meanings = {{{.id = "wrong-option",
                    .wrong = kLoader,
                    .weight = 0.97,
                    .title = "the weights are there, under the name without the variant",
                    .text = "variant=\"fp16\" asks for files with fp16 in their name. Leave the "
                            "option away; torch_dtype (or dtype) sets the precision.",
                    .decide = "Nothing: the message says it.",
                    .command = "shardwright info CHECKPOINT"}}}},
    {.id = "no-fsdp-config",
     .example = "Config file not found: .../actor/fsdp_config.json",
     .patterns = {"no such file or directory: <name>", "config file not found: <name>",
                  "file not found: <name>"},
     .meanings = {{{.id = "wrong-path",
                    .wrong = kLoader,
                    .weight = 0.6,
                    .title = "the folder is not one rank folder of verl, or an older verl wrote it",
                    .text = "verl's merger wants the folder with model_world_size_N_rank_R.pt "
                            "(global_step_N/actor, or critic) and fsdp_config.json in it. Versions "
                            "that did not write the file, and copies that left it out, keep N in "
                            "the names of the rank files: {\"FSDP_version\": 2, \"world_size\": N} "
                            "is all it holds. `shardwright convert` reads the rank files without "
                            "it.",
                    .decide = "Whether model_world_size_N_rank_R.pt are in the folder.",
                    .command = "shardwright info CHECKPOINT"}}},
     .accepts =
         [](const ErrorMessage& message) { return message.name.ends_with("fsdp_config.json"); },
     .loader = "verl"},
    {.id = "rank-file-of-world",
     .example = "No such file or directory: '.../model_world_size_16_rank_0.pt'",
     .patterns = {"no such file or directory: <name>"},
     .meanings = {{{.id = "other-world-size",
                    .rule = &kTopologyLocked,
                    .wrong = kLoader,
                    .weight = 0.8,
                    .title = "this run looks for rank files of its own number of ranks",
                    .text = "The name holds that number (world_size_N). The save had another one, "
                            "or this rank's file is on the disk of another node. Resume with the "
                            "number of ranks that saved, or join the rank files (verl's "
                            "model_merger, or `shardwright convert`) and start from the weights.",
                    .decide = "The names of the rank files in the folder, on every node.",
                    .command = "shardwright info CHECKPOINT"}}},
     .accepts =
         [](const ErrorMessage& message) {
           return message.name.find("world_size_") != message.name.npos &&
                  message.name.find("_rank_") != message.name.npos;
         },
     .loader = "verl"},
    {.id = "no-trainer-state",
     .example = "No such file or directory: '.../checkpoint-500/trainer_state.json'",
     .patterns = {"no such file or directory: <name>"},
     .meanings = {{{.id = "no-trainer-state",
                    .wrong = kLoader,
                    .weight = 0.85,
                    .title = "the folder has no state of Trainer to resume from",
                    .text = "trainer_state.json is in the checkpoint-N folders that Trainer saves "
                            "while it runs. save_model() and the end of a run write weights alone: "
                            "give such a folder as the model, without resume_from_checkpoint. In "
                            "a checkpoint-N folder it is written late: that save did not end.",
                    .decide = "Whether the folder has optimizer.pt and scheduler.pt.",
                    .command = "shardwright info CHECKPOINT"}}},
     .accepts =
         [](const ErrorMessage& message) { return message.name.ends_with("trainer_state.json"); },
     .loader = "transformers"},
    {.id = "partial-files",
     .example = "Only found 1 of 2 files",
     .patterns = {"only found <#found_files> of <#expected_files> files",
                  "found only <#found_files> of <#expected_files> files"},
     .meanings = {{kNotAllSaved, kWrongPath}}},
    {.id = "partial-files",
     .example = "Missing or incomplete model files: ['model-00001-of-00002.safetensors']",
     .patterns = {"missing or incomplete model files: <names>",
                  "[load_safetensors] failed to open file <name>"},
     .meanings = {{kFileGone, kWrongPath}}},
    {.id = "invalid-checkpoint",
     .example = "Checkpoint at FOLDER is invalid",
     .patterns = {"checkpoint at <name> is invalid", "checkpoint <name> is invalid",
                  "is not a valid checkpoint: <name>"},
     .meanings = {{{.id = "unfinished-save",
                    .rule = &kLeftoverMetadata,
                    .wrong = kDisk,
                    .weight = 0.45,
                    .title = "the program looked for its files there and did not find them whole",
                    .text = "The line does not say which. A save that did not end lacks the files "
                            "that are written last (.metadata, an index, a marker); the step "
                            "before it is as a rule whole.",
                    .decide = "What the check finds missing.",
                    .command = "shardwright check CHECKPOINT"},
                   kWrongPath}},
     .certainty = MessageCertainty::kThatItFailed},
    {.id = "no-tokenizer",
     .example = "FileNotFoundError: File not found: .../tokenizer.model",
     .patterns = {"no such file or directory: <name>", "file not found: <name>",
                  "can't load tokenizer for <name>"},
     .meanings = {{{.id = "tokenizer",
                    .wrong = kDisk,
                    .weight = 0.85,
                    .title = "the tokenizer's files are not beside the weights",
                    .text = "Trainers that save weights alone, and copies of *.safetensors, leave "
                            "tokenizer.json, tokenizer.model and tokenizer_config.json out. Copy "
                            "them from the base model, if no tokens were added. The weights are "
                            "not in question.",
                    .decide = "Which tokenizer files are in the folder, and in the base model's.",
                    .command = "shardwright info CHECKPOINT"}}},
     .accepts =
         [](const ErrorMessage& message) {
           return message.name.find("token") != message.name.npos ||
                  message.name.ends_with("vocab.json") || message.name.ends_with("merges.txt");
         }},
    {.id = "per-rank-object",
     .example = "Object shard .../rng_state/shard_0_8.pt not found",
     .patterns = {"object shard <name> not found", "missing dataloader state for <name>",
                  "dataloader state directory <name>"},
     .meanings = {{{.id = "per-rank-object",
                    .wrong = kLoader,
                    .weight = 0.85,
                    .title = "an object that each rank keeps for itself is not there for this rank",
                    .text = "Random numbers, data loaders and the like are saved per rank. A run "
                            "with more data-parallel ranks than the save (or a save without them) "
                            "finds none for some ranks. The weights are not in question: leave "
                            "the object out of the load (--no-load-rng, a fresh data loader).",
                    .decide = "The data-parallel ranks of both runs.",
                    .command = "shardwright info CHECKPOINT"}}},
     .accepts =
         [](const ErrorMessage& message) {
           return message.name.find("_extra_state") == message.name.npos;
         }},
    {.id = "no-metadata",
     .example = "No such file or directory: '.../.metadata'",
     .patterns = {"no such file or directory: <name>", "filenotfounderror: <name>",
                  "could not find .metadata"},
     .meanings = {{{.id = "unfinished-save",
                    .rule = &kLeftoverMetadata,
                    .wrong = kDisk,
                    .weight = 0.75,
                    .title = "the save did not end",
                    .text = "DCP writes .metadata last, when all ranks have written: data files "
                            "without it are a save that was interrupted. Use the step before it. "
                            "Where a .metadata.tmp is left over and whole, it can be put in its "
                            "place.",
                    .decide = "What is in the folder: data files and .metadata.tmp speak for it; "
                              "an empty folder or one of other folders for a wrong path."},
                   kWrongPath,
                   kLocalDisks}},
     .accepts =
         [](const ErrorMessage& message) { return message.name.empty() || is_metadata(message); }},
    {.id = "no-index",
     .example = "No such file or directory: '.../model.safetensors.index.json'",
     .patterns = {"no such file or directory: <name>", "filenotfounderror: <name>"},
     .meanings = {{kNoIndex, kWrongPath, kLocalDisks}},
     .accepts = is_index},
    {.id = "no-index",
     .example = "Unable to find latest file at .../latest, if trying to load latest checkpoint ...",
     .patterns = {"unable to find latest file at <name>", "unable to find 'latest' file at <name>",
                  "could not find the metadata file <name>", "common file <name> does not exist",
                  "load_common failed"},
     .meanings = {{kNoIndex, kWrongPath, kLocalDisks}}},
    {.id = "missing-file",
     .example = "No such file or directory: '.../__3_0.distcp'",
     .patterns = {"no such file or directory: <name>", "filenotfounderror: <name>"},
     .meanings = {{kFileGone, kWrongPath, kLocalDisks}},
     .accepts = is_data},
    {.id = "missing-file",
     .example = "Object shard .../_extra_state/shard_0_80.pt not found",
     .patterns = {"object shard <name> not found"},
     .meanings = {{{.id = "extra-state-missing",
                    .rule = &kExtraState,
                    .weight = 0.7,
                    .title = "the extra state of a layer was not saved",
                    .text = "_extra_state is TransformerEngine's FP8 bookkeeping, one object a "
                            "layer: a checkpoint that another version (or a converter) wrote has "
                            "none. No weight is missing. Load with strictness off for these keys.",
                    .decide = "Whether every missing object is an _extra_state.",
                    .command = "shardwright ls CHECKPOINT _extra_state"},
                   kFileGone}}},
    {.id = "no-checkpoint-here",
     .example = "CheckpointingException: FOLDER is not a distributed checkpoint",
     .patterns = {"<before>is not a distributed checkpoint",
                  "checkpoint directory <name> does not exist", "directory <name> doesn't exist",
                  "unknown checkpoint format in <name>"},
     .meanings = {{{.id = "wrong-path",
                    .wrong = kLoader,
                    .weight = 0.55,
                    .title = "the path is not the checkpoint's folder",
                    .text = "Megatron looks for metadata.json in iter_N/ itself, and saved in the "
                            "older format (mp_rank_NN/) there is none: then it is no distributed "
                            "checkpoint and loads without --use-dist-ckpt.",
                    .decide = "What is in the folder: the tool names the format.",
                    .command = "shardwright info CHECKPOINT"},
                   {.id = "unfinished-save",
                    .rule = &kLeftoverMetadata,
                    .wrong = kDisk,
                    .weight = 0.4,
                    .title = "the save did not end",
                    .text = "metadata.json and .metadata are written last; without them only data "
                            "files are there. Use the step before it.",
                    .decide = "Whether data files are in the folder."}}}},
    {.id = "no-pipeline",
     .example = "Error no file named model_index.json found in directory FOLDER",
     .patterns = {"error no file named <name>", "does not appear to have a file named <name>"},
     .meanings = {{{.id = "other-format",
                    .wrong = kLoader,
                    .weight = 0.8,
                    .title = "the folder is not a pipeline of diffusers",
                    .text = "model_index.json lies at the top of one, and names its parts. A "
                            "single file is loaded with from_single_file, one part (transformer, "
                            "vae) with its own class, a LoRA with load_lora_weights. Or the path "
                            "is a level too high or too low.",
                    .decide = "What is in the folder.",
                    .command = "shardwright info CHECKPOINT"}}},
     .accepts =
         [](const ErrorMessage& message) { return message.name.starts_with("model_index.json"); },
     .loader = "diffusers"},
    {.id = "no-pipeline-weights",
     .example = "Error no file named diffusion_pytorch_model.bin found in directory FOLDER",
     .patterns = {"error no file named <name>", "does not appear to have a file named <name>"},
     .meanings = {{{.id = "other-name",
                    .wrong = kLoader,
                    .weight = 0.65,
                    .title = "this part of the pipeline has no weights under the name asked for",
                    .text = "Files of a variant need it said (variant=\"fp16\" for *.fp16.*), and "
                            "a part needs its subfolder=. diffusers names .bin last, when no "
                            ".safetensors was found. A download may also have left the part out.",
                    .decide = "The files in that folder.",
                    .command = "shardwright info CHECKPOINT"}}},
     .accepts =
         [](const ErrorMessage& message) {
           return message.name.starts_with("diffusion_pytorch_model");
         },
     .loader = "diffusers"},
    {.id = "no-weights-file",
     .example = "FOLDER does not appear to have a file named config.json.",
     .patterns = {"does not appear to have a file named <name>"},
     .meanings = {{{.id = "adapter",
                    .wrong = kLoader,
                    .weight = 0.5,
                    .title = "the folder holds an adapter alone",
                    .text = "save_pretrained() of a PEFT model writes adapter_config.json and the "
                            "adapter, and no config.json. Load the base and put the adapter on it "
                            "(AutoPeftModelForCausalLM), or join both: "
                            "`shardwright merge BASE ADAPTER --out NEW`.",
                    .decide = "Whether adapter_config.json is in the folder.",
                    .command = "shardwright info CHECKPOINT"},
                   {.id = "other-format",
                    .wrong = kLoader,
                    .weight = 0.4,
                    .title = "the folder is a training checkpoint, or the path is not the model's",
                    .text = "DCP, DeepSpeed and Megatron write no config.json, and a run's folder "
                            "has it in its steps. Weights in shards have to be consolidated first.",
                    .decide = "What the tool takes the folder for.",
                    .command = "shardwright info CHECKPOINT"}}},
     .accepts =
         [](const ErrorMessage& message) { return message.name.starts_with("config.json"); }},
    {.id = "no-weights-file",
     .example = "Error no file named model.safetensors, or pytorch_model.bin, found in directory "
                "FOLDER",
     .patterns = {"error no file named <name>", "can't load weights for <name>",
                  "does not appear to have a file named <name>"},
     .meanings = {{{.id = "other-format",
                    .wrong = kLoader,
                    .weight = 0.6,
                    .title = "the folder holds another format than Hugging Face's",
                    .text = "A training checkpoint (DCP, DeepSpeed, Megatron) has its weights in "
                            "shards that from_pretrained does not know. They have to be "
                            "consolidated first.",
                    .decide = "What the tool takes the folder for.",
                    .command = "shardwright info CHECKPOINT"},
                   {.rule = &kMissingFile,
                    .wrong = kDisk,
                    .weight = 0.35,
                    .title = "the weights were not copied or the export did not end",
                    .text = "config.json and the tokenizer are written first, the weights last.",
                    .decide = "Whether files of weights are where the checkpoint was written."},
                   {.id = "other-name",
                    .wrong = kLoader,
                    .weight = 0.3,
                    .title = "the weights are there under another name",
                    .text = "The loader looks for one name: *.bin where the files are "
                            "*.safetensors (use_safetensors), a name with or without a variant "
                            "(fp16), one file where an index lists several, or the other way "
                            "round.",
                    .decide = "Which files are in the folder.",
                    .command = "shardwright info CHECKPOINT"}}}},
    {.id = "weights-file-unreadable",
     .example = "Unable to load weights from pytorch checkpoint file for 'FILE'",
     .patterns = {"unable to load weights from pytorch checkpoint file for <name>",
                  "unable to load weights from pytorch checkpoint file",
                  "unable to load weights from checkpoint file for <name>",
                  "unable to locate the file <name>"},
     .meanings = {{{.rule = &kShortFile,
                    .wrong = kDisk,
                    .weight = 0.5,
                    .title = "the file is not whole, or no pickle of torch",
                    .text = "transformers says this for everything that stops torch.load: a file "
                            "that was cut off, a Git LFS pointer, a class that is refused. The "
                            "reason stands further up in the traceback.",
                    .decide = "The exception before this one, and the size of the file."}}},
     .certainty = MessageCertainty::kThatItFailed},
    {.id = "rank-files-missing",
     .example = "Expected 8 of '*_optim_states.pt' under 'FOLDER' but found 7 files.",
     .patterns = {"expected <#expected_files> of~<name> under~but found <#found_files> files",
                  "can't find model states file at <name>", "can't find <name> files in directory",
                  "missing zero-3 checkpoint file for", "missing zero optimizer checkpoint for",
                  "expert checkpoint file not found: <name>"},
     .meanings = {{kNotAllSaved, kWrongPath}}},
    {.id = "not-json",
     .example = "OSError: It looks like the config file at 'config.json' is not a valid JSON file.",
     .patterns = {"config file at <name> is not a valid json file", "json.decoder.jsondecodeerror",
                  "looking for beginning of value", "jsondecodeerror: expecting value",
                  "expecting value: line <#line> column <#column>",
                  "expecting property name enclosed in double quotes: line <#line>",
                  "extra data: line <#line> column <#column>"},
     .meanings = {{{.rule = &kUnreadableJson,
                    .wrong = kDisk,
                    .weight = 0.7,
                    .title = "a JSON file beside the weights is empty, cut off, or not the file",
                    .text = "A failed download leaves an empty file, a Git LFS pointer or a web "
                            "page under the name; an edit by hand a comma too many. \"line 1 "
                            "column 1\" means that the first byte is already wrong: empty, a page "
                            "or a pointer.",
                    .decide = "Which file the traceback was reading: its size and first line."}}}},
    {.id = "disk-full",
     .example = "OSError: [Errno 28] No space left on device",
     .patterns = {"no space left on device", "disk quota exceeded", "unexpected pos"},
     .meanings = {{{.id = "unfinished-save",
                    .rule = &kLeftoverMetadata,
                    .wrong = kDisk,
                    .weight = 0.9,
                    .title = "the disk (or a quota) was full, and the save did not end",
                    .text = "What this step left is incomplete; its .metadata is missing, or of an "
                            "earlier save into the same folder. Make room and save again; resume "
                            "from the step before it.",
                    .decide = "Which file system was full: of the checkpoint, or of a temporary "
                              "folder."}}}},
    {.id = "already-there",
     .example = "Checkpoint already exists and self.overwrite=False.",
     .patterns = {"checkpoint already exists and self.overwrite=false"},
     .meanings = {{{.id = "already-there",
                    .wrong = kLoader,
                    .weight = 0.95,
                    .title = "a finished checkpoint is already in this folder",
                    .text = "The writer found a .metadata and was told not to overwrite. Nothing "
                            "was written and what is there is untouched.",
                    .decide = "Whether what is there is the checkpoint that you want to keep."}}}},
    {.id = "integrity-manifest",
     .example = "Checkpoint integrity verification failed for 2 file(s) in FOLDER",
     .patterns = {"checkpoint integrity verification failed for <#files> file"},
     .meanings = {{{.rule = &kBadRecord,
                    .wrong = kDisk,
                    .weight = 0.9,
                    .title = "files are not the bytes that were saved",
                    .text = "Megatron's integrity.json holds a hash of every file, and some differ "
                            "now: a disk, a copy, or a save into the same folder.",
                    .decide = "The files that the message lists against where they were written.",
                    .command = "--data"}}}},
};

}  // namespace

std::span<const MessageKind> file_messages() {
  return kFileMessages;
}

}  // namespace shw
