// Messages about format rules: safetensors headers, DCP metadata and plans.
#include "core/explain/message_kinds.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

constexpr std::string_view kHeadDecides =
    "The first bytes of the file, `head -c 100 FILE`, and its size where it was written.";

constexpr Interpretation kNoSafetensors = {
    .id = "not-safetensors",
    .rule = &kBadRecord,
    .wrong = kDisk,
    .weight = 0.7,
    .title = "the file is no safetensors file",
    .text =
        "Its first eight bytes are no length of a header: a Git LFS pointer (text that begins "
        "with \"version\"), a download page, a pickle that was renamed, or zeros of an upload "
        "that was interrupted.",
    .decide = kHeadDecides};

constexpr Interpretation kHeaderDamaged = {
    .rule = &kBadRecord,
    .wrong = kDisk,
    .weight = 0.75,
    .title = "the header of a safetensors file is damaged",
    .text =
        "The header is JSON and cannot be read: bytes changed, or another tool wrote it "
        "wrongly. The tensors behind it may be whole.",
    .decide = "The same file where it was written, compared byte for byte."};

constexpr MessageKind kFormatMessages[] = {
    {.id = "safetensors-header-length",
     .example = "SafetensorError: Error while deserializing header: HeaderTooLarge",
     .patterns = {"invalid json header length", "headertoolarge",
                  "deserializing header: header too large", "headertoosmall",
                  "deserializing header: header too small"},
     .meanings = {{kNoSafetensors,
                   {.rule = &kShortFile,
                    .wrong = kDisk,
                    .weight = 0.3,
                    .title = "the file is empty or nearly so",
                    .text = "A safetensors file has at least eight bytes.",
                    .decide = "The size of the file."}}}},
    {.id = "safetensors-short-header",
     .example = "Error while deserializing header: InvalidHeaderLength",
     .patterns = {"invalidheaderlength", "deserializing header: invalid header length"},
     .meanings = {{{.rule = &kShortFile,
                    .wrong = kDisk,
                    .weight = 0.75,
                    .title = "a safetensors file was cut off inside its header",
                    .text = "The header is said to be longer than the file: a download or a copy "
                            "that stopped at its beginning.",
                    .decide = kHeadDecides},
                   {.id = "not-safetensors",
                    .rule = &kBadRecord,
                    .wrong = kDisk,
                    .weight = 0.4,
                    .title = "the file is no safetensors file",
                    .text = "Bytes of another format were read as the length of a header.",
                    .decide = kHeadDecides}}}},
    {.id = "safetensors-incomplete",
     .example = "Error while deserializing header: incomplete metadata, file not fully covered",
     .patterns = {"metadataincompletebuffer", "incomplete metadata, file not fully covered"},
     .meanings = {{{.rule = &kShortFile,
                    .wrong = kDisk,
                    .weight = 0.85,
                    .title = "a safetensors file is shorter than its header says",
                    .text = "The header is whole and the tensors' bytes are not: a download, a "
                            "copy or a save that stopped. Tensors that lie before the end of the "
                            "file can be read.",
                    .decide = "The size of the file against where it was written; the check names "
                              "the tensors that are beyond its end."},
                   {.id = "trailing-bytes",
                    .rule = &kShortFile,
                    .wrong = kDisk,
                    .weight = 0.2,
                    .title = "bytes follow the last tensor",
                    .text = "A file that is longer than its header says is refused with the same "
                            "words: some tools append a line.",
                    .decide = "Whether the file is longer or shorter than the header says."}}}},
    {.id = "safetensors-header-json",
     .example = "Error while deserializing header: InvalidHeaderDeserialization",
     .patterns = {"invalidheaderdeserialization", "invalid json in header", "invalidheaderstart",
                  "invalid utf-8 in header", "invalid start character in header"},
     .meanings = {{kHeaderDamaged, kNoSafetensors}}},
    {.id = "safetensors-header-json",
     .example = "Error while deserializing header: InvalidHeader",
     .patterns = {"deserializing header: <name>"},
     .meanings = {{kHeaderDamaged, kNoSafetensors}},
     .accepts = [](const ErrorMessage& message) { return message.name == "InvalidHeader"; }},
    {.id = "safetensors-offsets",
     .example = "Error while deserializing header: InvalidOffset(\"NAME\")",
     .patterns = {"invalidoffset(<name>", "invalid offset for tensor <name>", "tensorinvalidinfo",
                  "invalid shape, data type, or offset for tensor",
                  "invalid shape, dtype, or offset for tensor", "validationoverflow",
                  "overflow computing buffer size", "misalignedslice"},
     .meanings = {{{.rule = &kBadRecord,
                    .wrong = kDisk,
                    .weight = 0.8,
                    .title = "the header contradicts itself",
                    .text = "A tensor's bytes overlap another's, leave a gap, or are not as many "
                            "as its shape and dtype need: the header was edited or written by a "
                            "tool with a mistake.",
                    .decide =
                        "Which tool wrote the file, and what it says of the tensor named."}}}},
    {.id = "safetensors-no-tensor",
     .example = "SafetensorError: File does not contain tensor NAME",
     .patterns = {"file does not contain tensor <name>", "tensornotfound(<name>"},
     .meanings = {{{.id = "index-disagrees",
                    .rule = &kMissingFile,
                    .wrong = kDisk,
                    .weight = 0.6,
                    .title = "the index names a file that does not have the tensor",
                    .text = "model.safetensors.index.json is of another save than the files beside "
                            "it, or a file was replaced.",
                    .decide = "Whether another file has the tensor, and the times of the index and "
                              "the files."},
                   {.rule = &kMissingKey,
                    .weight = 0.3,
                    .title = "the tensor has another name or was not saved",
                    .text = "Tied weights are stored once, under one of their names.",
                    .decide = "The names in the file.",
                    .command = "shardwright ls CHECKPOINT"}}}},
    {.id = "safetensors-no-format",
     .example = "The safetensors archive passed at FILE does not contain the valid metadata",
     .patterns = {"the safetensors archive passed at <name>",
                  "the checkpoint passed was saved with <name>"},
     .meanings = {{{.rule = &kPortability,
                    .wrong = kDisk,
                    .weight = 0.9,
                    .title = "the header lacks {\"format\": \"pt\"}",
                    .text = "Older versions of transformers refuse a file whose header does not "
                            "say for which framework it is. torch's own consolidation writes such "
                            "files. The tensors are sound.",
                    .decide = "The check says whether the header has it."}}}},
    {.id = "no-storage-record",
     .example = "KeyError: MetadataIndex(fqn='NAME', ...)",
     .patterns = {"keyerror: metadataindex(fqn=<name>", "metadataindex(fqn=<name>"},
     .meanings = {{{.rule = &kStorageDangling,
                    .wrong = kDisk,
                    .weight = 0.9,
                    .title = "a tile has no record of where its bytes are",
                    .text = "DCP keeps the tiles of a tensor in one list and the place of their "
                            "bytes in another; this tile is in the first only. A merge of several "
                            ".metadata files, or a tool that moved tiles and changed one list, "
                            "leaves this.",
                    .decide = "Whether a record with other offsets for the same name is left over: "
                              "then the tile was moved."},
                   {.rule = &kChunkRank,
                    .wrong = kDisk,
                    .weight = 0.2,
                    .title = "the tile's offsets have another number of dimensions",
                    .text = "An axis was put before the others in one of the two lists only.",
                    .decide = "The offsets in the message: as many as the tensor has "
                              "dimensions?"}}}},
    {.id = "payload-mismatch",
     .example =
         "AssertionError: req MetadataIndex(fqn='NAME', ...) mismatch sizes torch.Size([12]) "
         "vs torch.Size([8])",
     .patterns = {"req metadataindex(fqn=<name>"},
     .meanings = {{{.rule = &kPayloadShape,
                    .wrong = kDisk,
                    .weight = 0.9,
                    .title = "a tile's bytes are fewer than its entry in .metadata says",
                    .text = "The item in the data file holds another shape than the tile: the "
                            "save described its tiles by another mesh than the one that wrote "
                            "them, or data file and .metadata are of two saves.",
                    .decide = "Whether all tiles of the tensor are wrong in the same way (a "
                              "mistake at save) or this one alone (files of two saves).",
                    .command = "--depth headers"},
                   {.rule = &kDataNewer,
                    .wrong = kDisk,
                    .weight = 0.3,
                    .title = "data files of another save than .metadata",
                    .text = "A save into the same folder was interrupted: new data under an old "
                            ".metadata.",
                    .decide = "The times of the data files against .metadata's."}}}},
    {.id = "six-properties",
     .example = "ValueError: too many values to unpack (expected 5)",
     .patterns = {"too many values to unpack (expected 5)",
                  "too many values to unpack (expected 5, got 6)"},
     .meanings = {{{.rule = &kPortability,
                    .wrong = kDisk,
                    .weight = 0.95,
                    .title = "saved by torch 2.15 or later, opened by an older torch",
                    .text = "torch 2.15 records a sixth property of each tensor, its strides; "
                            "older versions expect five. The data is sound; `shardwright repair` "
                            "writes .metadata anew without it, or load with torch 2.15.",
                    .decide = "torch versions of both runs."}}}},
    {.id = "metadata-kind",
     .example = "Invalid checkpoint metadata for NAME, expected BytesStorageMetadata but found ...",
     .patterns = {"invalid checkpoint metadata for <name>"},
     .meanings = {{{.id = "object-for-tensor",
                    .rule = &kShapeMismatch,
                    .wrong = kLoader,
                    .weight = 0.7,
                    .title = "one side has a tensor where the other has an object",
                    .text = "The loader gives a plain number or object under this name and the "
                            "checkpoint holds a tensor: another optimizer (step as a number), or a "
                            "state dict that was not built from the model.",
                    .decide = "What the checkpoint has under the name.",
                    .command = "shardwright ls CHECKPOINT"}}}},
    {.id = "plan-overlap",
     .example = "key:NAME has overlapping chunks",
     .patterns = {"key:<name> has overlapping chunks"},
     .meanings = {{{.rule = &kChunkOverlap,
                    .weight = 0.9,
                    .title = "two ranks claim the same elements",
                    .text = "torch checked the tiles before it wrote: two of one tensor overlap. "
                            "Ranks computed their offsets for different meshes. This save wrote no "
                            ".metadata, so what is on disk is an earlier or an unfinished "
                            "checkpoint.",
                    .decide = "The mesh and the placements of this tensor on the ranks named."}}}},
    {.id = "plan-fill",
     .example = "key:NAME invalid fill tensor-volume: 65536 chunks-volume: 32768",
     .patterns = {"key:<name> invalid fill tensor-volume: <#tensor_elements> chunks-volume: "
                  "<#tile_elements>",
                  "invalid fill tensor-volume~<#tensor_elements> chunks-volume~<#tile_elements>"},
     .meanings = {{{.rule = &kCoverageGap,
                    .weight = 0.75,
                    .title = "the tiles do not fill the tensor",
                    .text = "The tiles have fewer (or more) elements than the tensor: a rank did "
                            "not take part, an axis of the mesh is unknown to the tensor, or its "
                            "size was taken from one rank. This save wrote no .metadata.",
                    .decide = "The two volumes: their ratio is the size of the axis that is "
                              "missing."},
                   {.rule = &kUnevenStrided,
                    .weight = 0.3,
                    .title = "uneven strided shards under an old torch",
                    .text = "FSDP over tensor parallelism of a dimension that does not divide "
                            "evenly: torch before pytorch #150490 computed offsets that overlap "
                            "and leave gaps.",
                    .decide = "torch version, and whether the dimension divides by dp x tp."}}}},
    {.id = "plan-bounds",
     .example = "key:NAME has out of bounds chunk: tensor-size:... chunk: ...",
     .patterns = {"key:<name> has out of bounds chunk"},
     .meanings = {{{.rule = &kChunkOutOfBounds,
                    .weight = 0.9,
                    .title = "a tile reaches outside its tensor",
                    .text = "The global size was taken from one rank and the offsets from all, or "
                            "the other way round. This save wrote no .metadata.",
                    .decide = "How many rows each rank owns of the tensor named."}}}},
    {.id = "plan-refused",
     .example = "Failed to validate global plan",
     .patterns = {"failed to validate global plan"},
     .meanings = {{{.rule = &kChunkOverlap,
                    .weight = 0.5,
                    .title = "two ranks claim the same elements",
                    .text = "torch checked the tiles before it wrote: two of one tensor overlap. "
                            "Ranks computed their offsets for different meshes. This save wrote no "
                            ".metadata, so what is on disk is an earlier or an unfinished "
                            "checkpoint.",
                    .decide = "torch 2.12 and later append which tensor and which tiles; older "
                              "ones log it one line above: paste that line too."},
                   {.rule = &kCoverageGap,
                    .weight = 0.5,
                    .title = "the tiles do not fill a tensor",
                    .text = "The tiles have fewer elements than the tensor: a rank did not take "
                            "part, or sizes are of another layout.",
                    .decide = "The world size of the process group that saved against the mesh of "
                              "the tensors."},
                   {.rule = &kUnevenStrided,
                    .weight = 0.4,
                    .title = "uneven strided shards under an old torch",
                    .text = "FSDP over tensor parallelism of a dimension that does not divide "
                            "evenly: torch before pytorch #150490 computed offsets that overlap "
                            "and leave gaps.",
                    .decide = "torch version, and whether the dimension divides by dp x tp."},
                   {.rule = &kChunkOutOfBounds,
                    .weight = 0.4,
                    .title = "a tile reaches outside its tensor",
                    .text = "The global size was taken from one rank and the offsets from all, or "
                            "the other way round.",
                    .decide = "The tensor that torch names."}}},
     .certainty = MessageCertainty::kThatItFailed},
    {.id = "duplicate-key",
     .example = "duplicated flatten key NAME",
     .patterns = {"duplicated flatten key <name>"},
     .meanings = {{{.id = "duplicate-key",
                    .rule = &kPlannerKeys,
                    .wrong = kLoader,
                    .weight = 0.9,
                    .title = "two entries of the state dict get the same flat name",
                    .text = "A name with a dot in it (\"a.b\") and a nested dict (\"a\": {\"b\"}) "
                            "become one name when the state dict is flattened. Nothing was written "
                            "or read.",
                    .decide = "The state dict's entries under the name in the message."}}}},
    {.id = "partial-placement",
     .example = "Any checkpointing related operations are not supported for DTensor with partial "
                "placements!",
     .patterns = {"not supported for dtensor with partial placements"},
     .meanings = {{{.id = "partial-placement",
                    .wrong = kLoader,
                    .weight = 0.95,
                    .title = "a tensor was to be saved before its sum over ranks was taken",
                    .text = "A Partial placement holds one rank's summand. Nothing was written. "
                            "torch before 2.14 has no such guard and saves one rank's summand in "
                            "silence: older checkpoints of this code may hold it.",
                    .decide = "Which tensor has a Partial placement, and the torch version of "
                              "earlier saves."}}}},
    {.id = "no-fsync",
     .example = "io.UnsupportedOperation: fileno",
     .patterns = {"unsupportedoperation: fileno"},
     .meanings = {{{.id = "no-fsync",
                    .rule = &kLeftoverMetadata,
                    .wrong = kDisk,
                    .weight = 0.85,
                    .title = "the save stopped at its last step: the store cannot sync a file",
                    .text = "fsspec backends have no file number, and older versions of torch ask "
                            "for one after the data is written. The data files are as a rule "
                            "whole; .metadata is missing or still .metadata.tmp, which can be put "
                            "in its place if it is whole.",
                    .decide = "Whether a .metadata.tmp is in the folder."}}}},
    {.id = "no-planner-data",
     .example = "metadata.planner_data ... TypeError: 'NoneType' object is not iterable",
     .patterns = {"planner_data~'nonetype' object is not iterable",
                  "planner_data~argument of type 'nonetype'"},
     .meanings = {{{.rule = &kPortability,
                    .wrong = kDisk,
                    .weight = 0.9,
                    .title = ".metadata has no planner_data, and this tool needs it",
                    .text = "Megatron and planners with flatten_state_dict=False leave it empty. "
                            "dcp.load takes that; dcp_to_torch_save takes it since torch 2.8.",
                    .decide = "Which torch runs the conversion."}}}},
    {.id = "unknown-extension",
     .example = "Unknown extension name='...'",
     .patterns = {"unknown extension name=<name>", "unknown extension version=<name>"},
     .meanings = {{{.rule = &kPortability,
                    .wrong = kLoader,
                    .weight = 0.85,
                    .title = "the items are compressed in a way that this loader does not know",
                    .text = "The save used an extension (such as zstd) that the loading run has "
                            "not registered, or a later version of it.",
                    .decide = "The extensions of the planner or writer that saved.",
                    .command = "shardwright info CHECKPOINT"}}}},
};

}  // namespace

std::span<const MessageKind> format_messages() {
  return kFormatMessages;
}

}  // namespace shw
