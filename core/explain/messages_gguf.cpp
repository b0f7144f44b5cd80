// Messages of llama.cpp, its converter and Ollama.
#include "core/explain/message_kinds.h"
#include "core/rules/names/name_rules.h"
#include "core/rules/reference/content_rules.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

constexpr std::string_view kLlama = "llama.cpp", kOllama = "Ollama";

constexpr Interpretation kWrongGgufModel = {
    .id = "config-disagrees",
    .rule = &kShapeMismatch,
    .wrong = kDisk,
    .weight = 0.5,
    .title = "the converter wrote other hyperparameters than the tensors have",
    .text =
        "llama.cpp computes the expected shape from the metadata in the GGUF file "
        "(embedding_length, head_count_kv, vocabulary). config.json was of another model when "
        "the file was converted, or the vocabulary was resized after it.",
    .decide = "The two shapes: which axis differs, and which key of config.json sets it.",
    .command = "shardwright info CHECKPOINT"};

constexpr Interpretation kOlderLlama = {
    .id = "older-program",
    .wrong = kLoader,
    .weight = 0.4,
    .title = "this build of llama.cpp is older than the file, or the converter was",
    .text =
        "Tensors were added or fused for this architecture (rope_freqs, output, fused experts) "
        "and one of the two programs does not know of it. Update llama.cpp and convert again.",
    .decide = "The build of llama.cpp that runs and the one that converted.",
    .command = "shardwright info CHECKPOINT"};

constexpr Interpretation kBlocksCounted = {
    .id = "gguf-keys",
    .rule = &kGgufKeys,
    .wrong = kDisk,
    .weight = 0.55,
    .title = "the header of the GGUF file announces what is not in it",
    .text =
        "llama.cpp asks for the tensors of every block up to block_count. A converter that counts "
        "layers for multi-token prediction (MTP, nextn) and leaves out their tensors, or a merge "
        "that lost a tensor, writes such a file.",
    .decide = "Whether the block of the tensor is the first one behind those that are there.",
    .command = "shardwright check CHECKPOINT"};

constexpr Interpretation kMtpBlock = {
    .id = "mtp-block",
    .wrong = kLoader,
    .weight = 0.35,
    .title = "the block is one for multi-token prediction, and this build takes it for another",
    .text =
        "Files of models with MTP layers count them in block_count and store them as the last "
        "blocks, with other tensors than the rest. A build that does not know them asks for those "
        "of an ordinary block.",
    .decide = "Whether the number is the last block's, block_count - 1.",
    .command = "shardwright ls CHECKPOINT blk"};
constexpr Interpretation kLostInBlock = {
    .id = "config-disagrees",
    .rule = &kMissingKey,
    .wrong = kDisk,
    .weight = 0.3,
    .title = "the file lacks one tensor of a block",
    .text =
        "A merge, a quantiser or an editor left it out, or the converter was made for another "
        "form of this architecture.",
    .decide = "Whether the blocks beside it have this tensor.",
    .command = "shardwright ls CHECKPOINT blk"};

// True for the first tensor of a block that llama.cpp reads: the whole block is missing.
bool begins_a_block(const ErrorMessage& message) {
  return message.name.starts_with("blk.") && message.name.ends_with(".attn_norm.weight");
}

constexpr MessageKind kGgufMessages[] = {
    {.id = "gguf-tokenizer",
     .example = "NotImplementedError: BPE pre-tokenizer was not recognized",
     .patterns = {"bpe pre-tokenizer was not recognized", "cannot find tokenizer merges",
                  "unknown pre-tokenizer type: <name>", "error loading model vocabulary"},
     .meanings = {{{.id = "tokenizer",
                    .wrong = kLoader,
                    .weight = 0.85,
                    .title = "the tokenizer is the trouble, not the tensors",
                    .text = "The converter tells tokenizers by a hash of what they do, and GGUF "
                            "files carry tokenizer.ggml keys. A fine-tune that changed "
                            "tokenizer.json, a model newer than the converter, or a missing "
                            "merges or vocabulary file is not known. Update llama.cpp and convert "
                            "again, or put the tokenizer files of the base model beside the "
                            "weights.",
                    .decide = "Whether the base model itself converts.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = kLlama},
    {.id = "gguf-cannot-open",
     .example = "gguf_init_from_file: failed to open GGUF file 'FILE'",
     .patterns = {"failed to open gguf file <name>"},
     .meanings = {{{.id = "wrong-path",
                    .wrong = kLoader,
                    .weight = 0.85,
                    .title = "the GGUF file cannot be opened",
                    .text = "There is no file under this path, or it may not be read. Nothing was "
                            "looked at yet: a relative path counts from where the program runs, "
                            "and a container sees its mounted folders only.",
                    .decide = "`ls -l` of the path, where the program runs.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = kLlama},
    {.id = "gguf-load-failed",
     .example = "unable to load model: /root/.ollama/models/blobs/sha256-...",
     .patterns = {"unable to load model: <name>",
                  "llama_model_loader: failed to load model from <name>",
                  "llama_load_model_from_file: failed to load model",
                  "llama_model_load_from_file_impl: failed to load model",
                  "llama runner process has terminated"},
     .meanings = {{{.id = "details-missing",
                    .rule = &kBadRecord,
                    .weight = 0.3,
                    .title = "the model did not load, and this line does not say why",
                    .text = "The reason stands in the program's log above this line (\"error "
                            "loading model: ...\"; for Ollama in the server's log). Paste that "
                            "line. A blob of Ollama is a GGUF file: it can be checked as one.",
                    .decide = "The first line of the log that says error.",
                    .command = "shardwright check CHECKPOINT"}}},
     .certainty = MessageCertainty::kThatItFailed,
     .loader = kLlama},
    {.id = "tensor-twice",
     .example = "ValueError: Duplicated tensor name 'blk.0.attn_norm.weight'",
     .patterns = {"duplicated tensor name <name>", "duplicate tensor name <name> was found for",
                  "key <name> was found in multiple files"},
     .meanings = {{{.id = "two-copies",
                    .rule = &kMissingFile,
                    .wrong = kDisk,
                    .weight = 0.75,
                    .title = "the folder holds a tensor twice",
                    .text = "Programs that read every *.safetensors (or *.bin) of a folder meet "
                            "the name again: two saves lie in it (another number of shards, a "
                            "consolidated.safetensors beside the shards, an adapter), or two "
                            "names of the checkpoint become one. Keep the files that the index "
                            "names.",
                    .decide = "Which files the index names, and which others are there.",
                    .command = "shardwright check CHECKPOINT"}}}},
    {.id = "ollama-content",
     .example = "Error: unsupported content type: unknown",
     .patterns = {"unsupported content type", "unknown tensor format"},
     .meanings = {{{.id = "wrong-path",
                    .wrong = kLoader,
                    .weight = 0.75,
                    .title = "FROM does not name something that Ollama imports",
                    .text = "It takes a GGUF file, or a folder of safetensors with config.json and "
                            "the tokenizer, whose files are called model*.safetensors. One "
                            "safetensors file, another name, or a file of another form is "
                            "refused.",
                    .decide = "What the tool takes the path for.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = kOllama},
    {.id = "download-checksum",
     .example = "digest mismatch, file must be downloaded again",
     .patterns = {"digest mismatch", "sha256 checksum does not", "checksum does not match",
                  "checksums do not match", "invalid hash value"},
     .meanings = {{{.rule = &kBadRecord,
                    .wrong = kDisk,
                    .weight = 0.9,
                    .title = "the bytes that arrived are not those that were published",
                    .text = "The download stopped, a proxy changed it, or the disk or memory of "
                            "this machine damages data. Delete the file and download it anew; if "
                            "it fails again, try another machine or network.",
                    .decide = "The size of the file against the published one.",
                    .command = "shardwright check CHECKPOINT"}}}},
    {.id = kShapes,
     .example = "check_tensor_dims: tensor 'NAME' has wrong shape; expected 4096, 32001, got 4096, "
                "32000, 1, 1",
     .patterns = {"tensor <name> has wrong shape; expected <ggml_current>, got <ggml_saved>"},
     .meanings = {{kWrongGgufModel, kOlderLlama}},
     .loader = kLlama},
    {.id = "gguf-no-block",
     .example = "error loading model: missing tensor 'blk.32.attn_norm.weight'",
     .patterns = {"missing tensor <name>", "create_tensor: tensor <name> not found",
                  "check_tensor_dims: tensor <name> not found"},
     .meanings = {{kBlocksCounted, kOlderLlama}},
     .accepts = begins_a_block,
     .loader = kLlama},
    {.id = "gguf-block-tensor",
     .example = "error loading model: missing tensor 'blk.40.ssm_conv1d.weight'",
     .patterns = {"missing tensor <name>", "create_tensor: tensor <name> not found",
                  "check_tensor_dims: tensor <name> not found"},
     .meanings = {{kOlderLlama, kMtpBlock, kLostInBlock}},
     .accepts = [](const ErrorMessage& message) { return message.name.starts_with("blk."); },
     .loader = kLlama},
    {.id = "gguf-adapter",
     .example = "llama_adapter_lora_init_impl: tensor 'blk.0.attn_q.weight' has incorrect shape "
                "(hint: maybe wrong base model?)",
     .patterns = {"tensor <name> has incorrect shape (hint: maybe wrong base model",
                  "tensor <name> does not exist in base model",
                  "lora tensor <name> has unexpected suffix",
                  "lora tensor pair for <name> is missing one component",
                  "failed to apply lora adapter"},
     .meanings = {{{.id = "adapter",
                    .wrong = kLoader,
                    .weight = 0.8,
                    .title = "the adapter does not fit this GGUF model, or is not one",
                    .text = "llama.cpp takes pairs NAME.lora_a and NAME.lora_b whose sizes are the "
                            "base's. The adapter is for another base or another size of it, was "
                            "trained with embeddings or whole layers (modules_to_save), or a "
                            "model was given in the place of an adapter. Convert it with "
                            "convert_lora_to_gguf.py against its own base.",
                    .decide = "base_model_name_or_path in adapter_config.json.",
                    .command = "shardwright ls CHECKPOINT"}}},
     .loader = kLlama},
    {.id = "gguf-no-tensor",
     .example = "error loading model: missing tensor 'token_embd.weight'",
     .patterns = {"missing tensor <name>", "create_tensor: tensor <name> not found",
                  "check_tensor_dims: tensor <name> not found"},
     .meanings = {{{.id = "config-disagrees",
                    .rule = &kMissingKey,
                    .wrong = kDisk,
                    .weight = 0.45,
                    .title = "the GGUF file lacks a tensor that its architecture needs",
                    .text = "The file was converted from an adapter, from a model whose names have "
                            "a prefix, or from part of the shards. It may also be another kind of "
                            "GGUF file: an adapter, a vision projector or an imatrix.",
                    .decide = "The names in the file, and general.architecture.",
                    .command = "shardwright ls CHECKPOINT"},
                   kOlderLlama}},
     .loader = kLlama},
    {.id = "gguf-tensor-count",
     .example = "done_getting_tensors: wrong number of tensors; expected 292, got 291",
     .patterns = {"wrong number of tensors; expected <#expected_tensors>, got <#found_tensors>"},
     .meanings =
         {{kOlderLlama,
           {.id = "config-disagrees",
            .rule = &kMissingKey,
            .wrong = kDisk,
            .weight = 0.35,
            .title = "the file holds tensors that the program did not ask for, or lacks one",
            .text = "\"expected\" is what the file holds, \"got\" is what the program asked "
                    "for. A tensor that the program does not use (rope_freqs, a bias, an "
                    "output layer of a tied model) makes the two differ.",
            .decide = "The names in the file: which one has no place in the model.",
            .command = "shardwright ls CHECKPOINT"}}},
     .loader = kLlama},
    {.id = "gguf-cut",
     .example =
         "tensor 'NAME' data is not within the file bounds, model is corrupted or incomplete",
     .patterns = {"tensor <name> data is not within the file bounds",
                  "data is not within the file bounds", "failed to read the magic",
                  "failed to read magic", "read error: unexpectedly reached end of file"},
     .meanings = {{{.rule = &kShortFile,
                    .wrong = kDisk,
                    .weight = 0.85,
                    .title = "the GGUF file is cut off",
                    .text = "The header says that a tensor ends beyond the end of the file: a "
                            "download, a copy or a conversion that stopped, or one part of a file "
                            "in several parts.",
                    .decide = "The size of the file where it came from."}}},
     .loader = kLlama},
    {.id = "gguf-unreadable",
     .example = "gguf_init_from_file_impl: failed to read tensor info",
     .patterns = {"failed to read tensor info", "failed to read key-value pairs"},
     .meanings = {{{.rule = &kShortFile,
                    .wrong = kDisk,
                    .weight = 0.6,
                    .title = "the header of the GGUF file is cut off or damaged",
                    .text = "The line before this one says what was wrong: paste it too. Without "
                            "one, the file ends inside its header.",
                    .decide = "The size of the file where it came from.",
                    .command = "shardwright check CHECKPOINT"}}},
     .certainty = MessageCertainty::kThatItFailed,
     .loader = kLlama},
    {.id = "gguf-type",
     .example = "tensor 'NAME' has invalid ggml type 39 (NONE)",
     .patterns = {"tensor <name> has invalid ggml type <#type>", "has invalid ggml type <#type>"},
     .meanings = {{{.id = "older-program",
                    .wrong = kLoader,
                    .weight = 0.8,
                    .title = "this build of llama.cpp does not know a type of the file",
                    .text = "Types get their numbers one after another: MXFP4, for one, is 39 and "
                            "came in August 2025. Update llama.cpp or the program around it "
                            "(Ollama, LM Studio, llama-cpp-python). Forks have types of their own "
                            "that only they read.",
                    .decide = "The types in the file, and the build that runs.",
                    .command = "shardwright info CHECKPOINT"},
                   {.rule = &kBadRecord,
                    .wrong = kDisk,
                    .weight = 0.15,
                    .title = "the header of the GGUF file is damaged",
                    .text = "A number far above the known types speaks for it.",
                    .decide = "The same file where it came from.",
                    .command = "shardwright check CHECKPOINT"}}},
     .loader = kLlama},
    {.id = "gguf-projector",
     .example = "clip_init: failed to load model 'mmproj.gguf': unknown projector type: NAME",
     .patterns = {"unknown projector type: <name>"},
     .meanings = {{{.id = "older-program",
                    .wrong = kLoader,
                    .weight = 0.85,
                    .title = "this build of llama.cpp does not know the vision projector",
                    .text = "The mmproj file is for a model that is newer than the build. Update "
                            "llama.cpp. The file of the language model is not in question.",
                    .decide = "clip.projector_type in the mmproj file, and the build that runs.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = kLlama},
    {.id = "gguf-requantise",
     .example = "llama_model_quantize: failed to quantize: requantizing from type q4_K is disabled",
     .patterns = {"requantizing from type <name> is disabled"},
     .meanings = {{{.id = "quantised",
                    .wrong = kLoader,
                    .weight = 0.95,
                    .title = "the file is quantised already",
                    .text = "Quantising it again loses more than once from the original. Start "
                            "from the F16, BF16 or F32 file; llama-quantize does it all the same "
                            "with --allow-requantize.",
                    .decide = "The types in the file.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = kLlama},
    {.id = "gguf-older-script",
     .example = "TypeError: Llama 3 must be converted with BpeVocab",
     .patterns = {"llama 3 must be converted with bpevocab"},
     .meanings = {{{.id = "older-program",
                    .wrong = kLoader,
                    .weight = 0.95,
                    .title = "the model was given to the older converter",
                    .text = "convert.py (convert_legacy_llama.py) is for Llama 1 and 2. Use "
                            "convert_hf_to_gguf.py of the same repository. The weights are not in "
                            "question.",
                    .decide = "Which script was called.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = kLlama},
    {.id = "ollama-dtype",
     .example = "Error: unknown data type: U8",
     .patterns = {"error: unknown data type: <name>"},
     .meanings = {{{.id = "quantised",
                    .wrong = kLoader,
                    .weight = 0.85,
                    .title = "Ollama does not import tensors of this dtype",
                    .text = "It takes F32, F16 and BF16. U8 and I8 are packed quantisations "
                            "(bitsandbytes, MLX, AWQ). Import the original in 16 bits, or decode "
                            "this one: `shardwright convert CHECKPOINT --to safetensors "
                            "--dequantise --out NEW`.",
                    .decide = "quantization_config in config.json.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = "Ollama"},
    {.id = "ollama-no-model",
     .example = "Error: pull model manifest: file does not exist",
     .patterns = {"pull model manifest: file does not exist"},
     .meanings = {{{.id = "wrong-path",
                    .wrong = kLoader,
                    .weight = 0.9,
                    .title = "Ollama's registry has no model of this name and tag",
                    .text = "No local file was opened. Look the name up on ollama.com, or make the "
                            "model from your file first: a Modelfile with `FROM ./model.gguf`, "
                            "then `ollama create NAME -f Modelfile`.",
                    .decide = "`ollama list`: the models that are here.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = "Ollama"},
    {.id = "ollama-blob-missing",
     .example = "bad manifest filepath name=NAME error=\"open .../blobs/sha256-...: no such file "
                "or directory\"",
     .patterns = {"bad manifest filepath"},
     .meanings = {{{.rule = &kMissingFile,
                    .wrong = kDisk,
                    .weight = 0.85,
                    .title = "a blob that Ollama's manifest names is not there",
                    .text = "A pull or a create stopped, or blobs were deleted or moved by hand. "
                            "Pull or create that model again; `ollama rm NAME` drops the entry.",
                    .decide = "Whether OLLAMA_MODELS names the folder that holds the blobs.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = "Ollama"},
    {.id = "gguf-header",
     .example = "key not found in model: llama.context_length",
     .patterns = {"key not found in model: <name>", "error loading model hyperparameters",
                  "interface conversion: interface {} is nil", "not a multiple of block size",
                  "wrong array length", "duplicate tensor name"},
     .meanings = {{kOlderLlama,
                   {.rule = &kBadRecord,
                    .wrong = kDisk,
                    .weight = 0.35,
                    .title = "the header of the GGUF file contradicts itself or lacks a key",
                    .text = "The file was edited, was written by a tool with a mistake, or is not "
                            "a model (an adapter, a projector, an imatrix).",
                    .decide = "What wrote the file, and general.architecture.",
                    .command = "shardwright check CHECKPOINT"}}},
     .loader = kLlama},
    {.id = "gguf-parts",
     .example = "invalid split file idx: 1 (file: FILE), model must be loaded with the first split",
     .patterns = {"illegal split file idx", "invalid split file", "failed to load gguf split",
                  "split file name: <name>", "n_split mismatch"},
     .meanings = {{{.rule = &kMissingFile,
                    .wrong = kDisk,
                    .weight = 0.6,
                    .title = "a part of a GGUF model in several files is missing or is not the "
                             "first",
                    .text = "The files are NAME-00001-of-0000N.gguf: all N lie in one folder under "
                            "these names, and the first one is given to the program.",
                    .decide = "Whether all N are there, with the names that the converter gave.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = kLlama},
    {.id = "gguf-magic",
     .example = "gguf_init_from_file: invalid magic characters: 'PK', expected 'GGUF'",
     .patterns = {"invalid magic characters <name>", "invalid magic characters: <name>",
                  "invalid magic number <name>", "gguf magic invalid", "unknown (magic, version)",
                  "bad gguf magic", "magic number mismatch", "invalid file magic"},
     .meanings = {{{.id = "other-format",
                    .wrong = kDisk,
                    .weight = 0.75,
                    .title = "the file is not a GGUF file",
                    .text = "Its first four bytes are not \"GGUF\": it is a safetensors or a torch "
                            "file with another ending, a Git LFS pointer, a download page, or a "
                            "model of the older GGML form, which has to be converted anew.",
                    .decide = "The first bytes of the file: `head -c 16 FILE`.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = kLlama},
    {.id = "gguf-lora-weight",
     .example = "ERROR:lora-to-gguf:Unexpected name 'NAME': Not a lora_A or lora_B tensor",
     .patterns = {"unexpected name <name>: not a lora_a or lora_b tensor",
                  "unexpected name <name> not a lora_a or lora_b tensor"},
     .meanings = {{{.id = "whole-weights",
                    .rule = &kAdapterContradicts,
                    .wrong = kLoader,
                    .weight = 0.85,
                    .title = "the adapter holds a whole weight beside its LoRA matrices",
                    .text = "modules_to_save, tokens that were added, or a save of the whole model "
                            "put it there; a GGUF adapter has no place for it. Merge the adapter "
                            "into its base and convert that: "
                            "`shardwright merge BASE ADAPTER --out NEW`.",
                    .decide = "modules_to_save in adapter_config.json.",
                    .command = "shardwright check CHECKPOINT"}}},
     .loader = kLlama},
    {.id = "gguf-convert-scale",
     .example = "ValueError: Can not map tensor 'model.layers.0.mlp.down_proj.weight_scale_inv'",
     .patterns = {"can not map tensor <name>", "cannot map tensor <name>",
                  "unexpected tensor name: <name>"},
     .meanings = {{{.id = "quantised",
                    .wrong = kLoader,
                    .weight = 0.88,
                    .title = "the converter wants full precision, and this tensor is a scale",
                    .text = "The checkpoint is quantised in a way that this version of the "
                            "converter does not decode. Take the original in 16 bits, a later "
                            "converter, or decode it first: `shardwright convert --dequantise`.",
                    .decide = "quantization_config in config.json.",
                    .command = "shardwright info CHECKPOINT"}}},
     .accepts = [](const ErrorMessage& message) { return is_scale_name(message.name); },
     .loader = kLlama},
    {.id = "gguf-parts-missing",
     .example = "ValueError: Missing tensors: ['NAME']",
     .patterns = {"missing tensors: <names>", "missing or incomplete model files: <names>"},
     .meanings = {{{.id = "unfinished-save",
                    .rule = &kMissingFile,
                    .wrong = kDisk,
                    .weight = 0.8,
                    .title = "the index names tensors that no file here holds",
                    .text = "The converter reads every model*.safetensors file and compares the "
                            "names with model.safetensors.index.json. A part was not downloaded, "
                            "or the index is of another save.",
                    .decide = "Whether every file that the index names is there.",
                    .command = "shardwright check CHECKPOINT"}}},
     .loader = kLlama},
    {.id = "gguf-convert",
     .example = "ValueError: Can not map tensor 'NAME'",
     .patterns = {"can not map tensor <name>", "cannot map tensor <name>",
                  "unexpected tensor name: <name>", "unprocessed experts: <names>",
                  "unprocessed norms: <names>"},
     .meanings = {{{.id = "renamed",
                    .rule = &kUnexpectedKey,
                    .wrong = kDisk,
                    .weight = 0.5,
                    .title = "the converter does not know this tensor of the checkpoint",
                    .text = "Either its name has another prefix than the architecture's (a merge "
                            "or a fine-tune wrote it without model. or with base_model.model.), or "
                            "it is a scale of a quantised checkpoint (weight_scale_inv, SCB, "
                            "qweight, absmax): the converter wants full precision.",
                    .decide = "Whether all names differ or only the scales.",
                    .command = "shardwright check CHECKPOINT"},
                   {.id = "unfinished-save",
                    .rule = &kMissingKey,
                    .wrong = kDisk,
                    .weight = 0.3,
                    .title = "a shard or some experts are missing",
                    .text = "Experts are stacked when all of a layer are there. Experts that stay "
                            "over mean that others of the same layer are in no file.",
                    .decide = "Whether every file of the index is there.",
                    .command = "shardwright check CHECKPOINT"}}},
     .loader = kLlama},
};

}  // namespace

std::span<const MessageKind> gguf_messages() {
  return kGgufMessages;
}

}  // namespace shw
