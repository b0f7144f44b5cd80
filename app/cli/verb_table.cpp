#include "app/cli/verb_table.h"

#include <algorithm>

namespace shw::cli {
namespace {

// Options: s --spec, a --against, d --data and --depth, m --mesh, l --limit and --values, o --out,
// i --in-place and --yes, p --plan, --then and --placements, f --fail-on, g --fill, v --data alone,
// n --baseline and --policy, e --format, w --world, r --rows and --tp, b --memory, k --roll-back, y
// --yes, c --placements, t --to and the other options of convert, A --against of verify, W
// --weights of average, R --rank of extract, N --ignore, S --sort, --reverse and --columns of ls, h
// --integrity, H --paths and --copy, T --atol and --rtol, P --plain, u --device (computing) and
// --transport, U --device (counting), M --processes, B --map and --set, V --as of hash, Z --by-step
// of stats, E --view of report, q --ranks-per-node.
constexpr VerbRow kVerbs[] = {
    {"info", "", "What it is: format, tensors, ranks, bytes",
     "shardwright info step_9000\n  shardwright info step_9000 --json"},
    {"ls", "dsS", "List the tensors; words and terms narrow the list",
     "shardwright ls step_9000 experts down\n  shardwright ls step_9000 rank:17 dtype:bfloat16\n"
     "  shardwright ls step_9000 '*.bias' --sort bytes --reverse --columns tensor,bytes",
     "Words must occur in the name; terms are finding:*, finding:RULE, dtype:bfloat16, rank:17, "
     "ndim:3, shape:[288,*,640]. Dtypes may be spelt bf16, fp32, float. A word with * or ? is a "
     "shell pattern of the whole name. Entries that are not tensors are listed where words fit "
     "them. Column titles are printed on a terminal only. Exit code 1: nothing fits."},
    {"show", "l", "One tensor: its chunks, their files, its values",
     "shardwright show step_9000 model.norm.weight\n"
     "  shardwright show step_9000 model.norm.weight --values --limit 8",
     "The two arguments may change places. FQN may be words that fit one tensor only. Of an entry "
     "that is not a tensor its value is printed."},
    {"stats", "UyMZ", "Statistics of its values: NaN, minimum, maximum, mean, histogram",
     "shardwright stats step_9000\n"
     "  shardwright stats step_9000 'model.layers.3.*' model.norm.weight --json\n"
     "  shardwright stats runs/7 --by-step            where NaN begin, and what changes",
     "Elements, NaN, infinities, zeros, denormals, least and greatest, mean, standard deviation, "
     "histogram by power of two. Every byte is read once. Sums are exact, so that the answer "
     "depends neither on threads nor on tiles. Names may be shell patterns in quotes; without any, "
     "all tensors. Tensors that are not whole or hold NaN come first. Exit code 2: of some tensor "
     "elements are missing, cannot be read, or are in several tiles."},
    {"hash", "byMVB", "One hash per tensor, equal for equal elements in any sharding and format",
     "shardwright hash step_9000 > here.txt         and there, then: diff here.txt there.txt\n"
     "  shardwright hash step_9000 'model.*' --json\n"
     "  shardwright hash run/iter_0000100 --as hf     as the Hugging Face model has them",
     "One line per tensor (hash, name, dtype, shape), then one for all of them. Equal lines of two "
     "checkpoints are equal tensors, whatever their meshes, files and formats are: nothing has to "
     "be copied to know it. It shows accidents, not forgery. Every byte is read once. Entries that "
     "are not tensors are left out. Exit code 2: some tensor has no hash, because elements are "
     "missing, are in several tiles or cannot be read."},
    {"map", "sP", "Draw which rank wrote which tile",
     "shardwright map step_9000 model.layers.3.moe.experts.down_proj.weight --spec spec.json",
     "Saved next to expected, where there is a spec. Where there is colour each writer keeps its "
     "own; --plain draws in ASCII."},
    {"check", "sadmqfnbNyMB", "Say what is wrong, and why",
     "shardwright check step_9000 --spec spec.json\n"
     "  shardwright check step_9000 --against step_8000   another checkpoint says what is "
     "expected\n"
     "  shardwright check step_9000 --data        every byte, CRCs included\n"
     "  shardwright check step_* --ignore portability",
     "Several checkpoints are checked in turn. The exit code is 1 if one of them has findings, "
     "otherwise the largest exit code. With --json the output is one list.\n\nIgnored rules are "
     "listed under \"not checked\". `ignore = [\"RULE\"]` in shardwright.toml, or under "
     "[tool.shardwright] of pyproject.toml, does the same for the current folder, unless that is "
     "the checkpoint."},
    {"diff", "vbTBy", "Show how two checkpoints differ, in any format and sharding",
     "shardwright diff step_8000 step_9000          names, shapes, dtypes, tiles\n"
     "  shardwright diff step_9000 hf --data          every value as well\n"
     "  shardwright diff step_9000 hf --atol 1e-5 mlp '*.weight'     what fits, nearly the same",
     "Names, shapes, dtypes, tiles. With --data every element too, bit by bit, with the largest "
     "distance, ULP, cosine and the first that differs, and names that are new names of the same "
     "bytes. --atol and --rtol are those of torch.allclose; two NaN count as equal, and another "
     "dtype stays a difference.\n\nExit code 0: the same to the bit, or within the tolerance; 1: "
     "different, or WORDS fit "
     "nothing; 2: undecided. Without --data it is "
     "undecided wherever metadata agree. It is also undecided where bytes are damaged, missing, "
     "filled by a repair, or differ between copies inside one checkpoint."},
    {"plan", "sadmgpXbBy", "Show what a repair would do, and what it would lose",
     "shardwright plan step_9000 --spec spec.json\n"
     "  shardwright plan step_9000 --spec spec.json --json > plan.json\n"
     "  shardwright plan step_9000 --plan steps.json        what a plan of steps comes to",
     "Exits 1 if a finding is not repaired by the plan."},
    {"repair", "sadmoipgbhuMB", "Repair into a new folder, with a certificate",
     "shardwright repair step_9000 --spec spec.json\n"
     "  shardwright repair step_9000 --plan plan.json --out step_9000-mended --yes\n"
     "  shardwright repair step_9000 --spec spec.json --in-place --yes\n"
     "  shardwright repair step_9000 --spec spec.json --then reshard:dp=8 --then cast:bfloat16",
     "Into a new folder next to the checkpoint. It asks first; without a terminal and without "
     "--yes it writes nothing and exits 3. If the same repair was killed on this machine, it is "
     "resumed. Leftovers of a different repair for the same output are removed.\n\nThe result is "
     "checked like the checkpoint. Remaining findings are printed first, and the exit code is 1. "
     "Filled elements stay a finding (filled-elements), which alone leaves the exit code 0, except "
     "for zeros that --fill puts where elements are lost: then it is 1 unless --accept-loss is "
     "given.\n\nWithout findings nothing is written and the exit code is 0; --json then names the "
     "checkpoint as output, with \"repaired\": false. If no finding can be repaired, it is an "
     "error with exit code 2."},
    {"reshard", "sadmoycbhuM", "Reshard every tensor for a different mesh",
     "shardwright reshard step_9000 --mesh dp=8,tp=2 --out step_9000-dp8-tp2\n"
     "  shardwright reshard step_9000 --mesh dp=8,tp=2 --placements placements.json\n"
     "      placements.json: {\"*.weight\": [\"Shard(0)\", \"Shard(1)\"], \"*\": [\"Shard(0)\", "
     "\"Replicate\"]}",
     "Into a new folder, with proof. The file of --placements is JSON: shell patterns of names, "
     "each with a placement for every axis; the first that matches counts. Without it: Shard(0) on "
     "the first axis, Replicate on the others. What holds whole tensors (safetensors, torch.save) "
     "is written as DCP. A broken checkpoint is refused."},
    {"convert", "sadoytbhuM", "Write the same tensors in another format",
     "shardwright convert step_9000 --to safetensors --out hf\n"
     "  shardwright convert step_9000 --to torch --out whole          one file, model.pt\n"
     "  shardwright convert step_9000 --to safetensors --leave-out 'optimizer.*' --out hf\n"
     "  shardwright convert step_9000 --to safetensors --weights-only --strip model. --dtype bf16\n"
     "  shardwright convert step_9000 --to torch layers.3 '*.weight'   only what fits, as in ls\n"
     "  shardwright convert hf --to dcp --out step_0\n"
     "  shardwright convert hf --to torch_dist --out run/release       for Megatron-LM\n"
     "  shardwright convert run/iter_0000100 --to hf --config hf --out back",
     "With proof. Entries that the format has no place for are refused by name; --weights-only "
     "leaves them out. Exit code 1 where WORDS fit nothing.\n\nThe files have the names that "
     "transformers, diffusers and PEFT look for, and config.json, tokenizer and the like are "
     "copied. --dtype leaves integers, quantised weights, their scales and what loaders keep in "
     "float32 as they are, and config.json says the new dtype.\n\nWith --to hf, torch_dist, titan "
     "or fsdp_dtensor names and layouts become those of Hugging Face, Megatron-core, torchtitan or "
     "Megatron-FSDP, by a map (docs/maps.md). Optimizer states go the same way where that program "
     "keeps them; hf has none. What no file says is asked for with --set.\n\nWith --to optimizer "
     "the states become the optimizer.pt from which transformers' Trainer resumes. It numbers "
     "parameters: --order gives their order where the checkpoint does not."},
    {"learn", "oy", "Find the map between two checkpoints of the same weights",
     "shardwright learn hf run/iter_0000100 --out mine.json\n"
     "  shardwright convert hf2 --map mine.json --out run2/release      other weights, by that map",
     "Which tensors of A make each tensor of B: renamed, stacked, joined, split, in another order "
     "of "
     "rows, transposed or padded. It is found by hashes of rows and columns, written as a map with "
     "counters ({l}, {e}), applied to A and compared with B element by element. Every byte is read "
     "twice. Without --out the map goes to stdout.\n\nTensors that are all one value, such as "
     "norms "
     "of ones, are matched by name, and the answer says which. Exit code 1: a tensor of B is not "
     "explained."},
    {"merge", "doytbhuM", "Add a LoRA adapter to its base model",
     "shardwright merge llama adapter --out llama-tuned\n"
     "  shardwright merge llama-4bit adapter --dequantise        a quantised base is decoded "
     "first\n"
     "  shardwright diff llama/@merged=adapter other --data      without writing anything",
     "As PEFT's merge_and_unload(), without the model and in any memory: W + scale B A, computed "
     "in "
     "float32 and rounded once to the dtype of each weight. The scale comes from "
     "adapter_config.json (lora_alpha, r, alpha_pattern, use_rslora). DoRA, embeddings, "
     "convolutions, trained biases and modules_to_save are merged too. The base may be in any "
     "format and any tiles, and the result has its format, config and tokenizer.\n\nWhat has no "
     "place in the base is an error that names it. Adapters that change the base when they are "
     "loaded (PiSSA, OLoRA, LoftQ) and other kinds than LoRA are refused. Exit code 1: an input "
     "has a "
     "warning."},
    {"average", "WdoytbhuM", "Average checkpoints of one model",
     "shardwright average step_8000 step_9000 step_10000 --out averaged\n"
     "  shardwright average a b --weights 0.7,0.3 --out mixed\n"
     "  shardwright average a b c --weights 1,1,-1 --out task     a + (b - c)",
     "Every floating-point weight becomes the weighted sum, computed in float64 and rounded once "
     "to A's dtype. Formats and tiles may differ. Integers are copied from A; optimizer states and "
     "other entries that are not weights are left out. The weights must add up to 1."},
    {"delta", "doytbhuM", "Write the difference between two checkpoints as a delta",
     "shardwright delta step_8000 step_9000 --out d\n"
     "  shardwright apply step_8000 d --out step_9000-again",
     "The elements whose bits differ, with their places: exact, and small where training changed "
     "few of them. Tensors of which most changed, new ones, and those of another shape or dtype "
     "are "
     "in it whole. delta.json has the hashes of both sides. Entries that are not tensors are left "
     "out. Formats and tiles may differ."},
    {"apply", "doytbhuM", "Make the second checkpoint again, from the first and a delta",
     "shardwright apply step_8000 d --out step_9000-again",
     "Refused if the result does not have the hash recorded in the delta: the base differs, or the "
     "delta is damaged. Entries that are not tensors are copied from the base."},
    {"extract", "RdoytbhuM", "Extract a LoRA adapter from a fine-tuned model",
     "shardwright extract llama-tuned llama --rank 32 --out adapter\n"
     "  shardwright merge llama adapter --out again",
     "Of each two-dimensional weight that differs from BASE the nearest product of two matrices of "
     "that rank (truncated singular value decomposition). Embeddings, norms and biases that differ "
     "are in the adapter whole. The result is what PEFT loads. How much of the change the matrices "
     "leave out is said, and for each weight in extraction.json. `delta` is exact, and larger."},
    {"export-hdf5", "sadmoHy",
     "A small HDF5 file through which h5py reads every tensor where it is",
     "shardwright export-hdf5 step_9000 --out step_9000.h5\n"
     "  shardwright export-hdf5 step_9000 --out step_9000.h5 --copy   and what it cannot map\n"
     "  h5py.File(\"step_9000.h5\", \"r\")[\"tensors\"][\"model.norm.weight\"][:8]",
     "One dataset per tensor under /tensors, dots kept. What is there of damaged tensors is listed "
     "under /partial with NaN for the rest, and the exit code is 2. What HDF5 cannot map is left "
     "out, or copied with --copy. Relative paths need HDF5_EXTFILE_PREFIX='${ORIGIN}' in the "
     "environment of who reads it. Open it to read only: through it a writer changes the "
     "checkpoint."},
    {"verify", "AbyM", "Prove a repaired checkpoint against its certificate",
     "shardwright verify step_9000-repaired\n"
     "  shardwright verify step_9000-repaired --against step_9000  element by element",
     "Without the source: every tile, file, entry and dtype must be as it was certified. The "
     "certificate, lost.json and the record inside the checkpoint must agree. A certificate "
     "without a hash of itself (content_hash; older versions wrote none) is undecided.\n\nWith "
     "--against the certificate's plan is applied to the source again, and every element is read "
     "on both sides. Each must equal the source's element (cast, if the plan casts) at the "
     "position that the plan gives. Forged hashes do not help. Differences are named: tensor, "
     "index, file and both values.\n\nIt is undecided if the source is a different one, or if the "
     "certificate has no plan (older versions wrote none)."},
    {"resume", "kbuM", "Resume an interrupted run, or remove its result",
     "shardwright resume step_9000-repaired\n"
     "  shardwright resume --roll-back step_9000-repaired",
     "DIR is the output folder, the unfinished folder next to it (DIR.shardwright-partial-...), or "
     "a checkpoint that was being repaired in place. Finished files are kept if the inputs are "
     "unchanged; the whole result is verified as usual. Changed inputs are named, with exit code "
     "2. If everything was already done, nothing happens and the exit code is 0; without an "
     "interrupted run it is 3. --roll-back removes the unfinished result."},
    {"undo", "", "Undo an in-place repair", "shardwright undo step_9000"},
    {"commit", "", "Keep an in-place repair for good", "shardwright commit step_9000",
     "The files that undo needs are removed."},
    {"upload", "", "Upload a folder to a bucket, or resume an upload",
     "shardwright upload step_9000-repaired s3://bucket/step_9000",
     "The prefix must be empty, except for an interrupted upload of the same folder, whose files "
     "are not sent again. Large files are sent in parts. .metadata, indexes and certificates are "
     "sent last, so that no loader takes a partial folder for a checkpoint. At the end the size of "
     "each object is compared."},
    {"report", "sadmqofgnNebEy",
     "Write what was found: a page (HTML, Markdown), JSON, tables, or a form for CI",
     "shardwright report step_9000 --spec spec.json --out report.html\n"
     "  shardwright report step_9000 --format sarif --out report.sarif    for CI: sarif, junit, "
     "github\n"
     "  shardwright report step_9000 --data --format hdf5 --out report.h5\n"
     "  shardwright report step_9000 --against step_8000 --fill from:step_8000",
     "The format is that of --format, else what the name of the file says (.html, .json, "
     ".sarif, .xml, .h5), else Markdown. HDF5 is tables: tensors, chunks, files, findings, "
     "subjects, and with --data statistics and histograms.\n\nThe exit code is that of `check`. "
     "With --fail-on never it is 0 where the report is written and all could be checked."},
    {"explain", "wr", "Explain an error message or a rule",
     "shardwright explain placement-axis-moved\n"
     "  shardwright explain \"Size mismatch between saved torch.Size([64]) and current: "
     "torch.Size([128]) for optimizer.state.0.exp_avg\" --world 4:2\n"
     "  shardwright explain < traceback.txt\n"
     "  shardwright explain - step_9000 < traceback.txt\n"
     "  shardwright explain glu-split-local --rows 4,8 --tp 2     what a save would lose",
     "TEXT is the message or a whole traceback, which can come on stdin too. The most likely cause "
     "comes first. The rank counts of both runs narrow it down. With CHECKPOINT, names and shapes "
     "of the message are looked up in it. Exit code 2: no known message was found in the "
     "text.\n\nWith a rule id it explains the rule with a drawn example; without arguments it "
     "lists the rules. With --rows, the rows of a gated weight that each FSDP rank owns (4,8), it "
     "predicts the result of the save bug Megatron-LM #4423: harmless, an error, or rows lost "
     "silently."},
    {"demo", "", "Make a broken checkpoint for practice", "shardwright demo demo",
     "About 40 MB of disk."},
    {"completion", "", "Print shell completions or the man page",
     "source <(shardwright completion bash)        in ~/.bashrc\n"
     "  shardwright completion zsh > ~/.zfunc/_shardwright\n"
     "  shardwright completion fish > ~/.config/fish/completions/shardwright.fish\n"
     "  shardwright completion man | man -l -\n"
     "  shardwright completion markdown > docs/verbs.md",
     "`cmake --install` puts the first four where shells and man look for them."},
    {"gui", "sam", "Open the desktop", "shardwright gui step_9000 --spec spec.json"},
};

constexpr VerbGroup kGroups[] = {
    {"Look", "info ls show map stats hash"},
    {"Judge", "check explain diff verify"},
    {"Change",
     "plan repair reshard convert learn merge extract average delta apply resume undo commit"},
    {"Share", "report export-hdf5 upload gui demo completion"},
};

}  // namespace

std::span<const VerbGroup> verb_groups() {
  return kGroups;
}

std::vector<const VerbRow*> verbs_of(const VerbGroup& group) {
  std::vector<const VerbRow*> rows;
  for (std::string_view rest = group.verbs; !rest.empty();) {
    const std::string_view name = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(rest.size(), name.size() + 1));
    for (const VerbRow& row : kVerbs) {
      if (name == row.name) rows.push_back(&row);
    }
  }
  return rows;
}

std::span<const VerbRow> verb_table() {
  return kVerbs;
}

}  // namespace shw::cli
