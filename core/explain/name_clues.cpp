#include "core/explain/name_clues.h"
#include "core/rules/names/name_rules.h"
#include "core/rules/reference/content_rules.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

constexpr FaultSide kUnclear = FaultSide::kEither;

constexpr ClueWords kScaleWords = {
    "absmax",        "quant_map",   "quant_state",  ".SCB",       "qweight",     "weight_scale",
    "_scale_inv",    ".scales",     ".biases",      ".qzeros",    "g_idx",       "weight_packed",
    "channel_scale", "input_scale", "scale_weight", "scaled_fp8", "scale_input", "comfy_quant"};
constexpr ClueWords kAdapterWords = {"lora_A",  "lora_B",     "lora_embedding", "lora_a.",
                                     "lora_b.", "lora_down",  "lora_up",        "lokr_",
                                     "hada_",   "lora_unet_", "lora_te"};
constexpr ClueWords kUnmergedWords = {".base_layer.", ".original_module.", ".modules_to_save."};
constexpr ClueWords kMtpWords = {"mtp", "nextn", ".eh_proj", ".enorm", ".hnorm"};
constexpr ClueWords kModalityWords = {
    "visual.", "vision_", "multi_modal_", "mm_projector", "audio_tower",
    "image_",  "img_",    "vision.",      "audio_model",  "speech_encoder"};
constexpr ClueWords kHeadWords = {"lm_head.", "output_layer.weight", "embed_out.weight"};

constexpr ClueWords kNewHeadWords = {
    "classifier.",  "score.weight", "qa_outputs.", "pooler.dense",    "summary.",
    "reward_head.", "v_head.",      "value_head.", "cls.predictions", "pre_classifier."};

constexpr ClueWords kGroupedExpertWords = {"experts.weight1", "experts.weight2",
                                           "experts.linear_fc1.weight0", "local_experts."};
constexpr ClueWords kLegacyMegatronWords = {"query_key_value.", "self_attention.dense.",
                                            "dense_h_to_4h.",   "dense_4h_to_h.",
                                            "input_norm.",      "post_attention_norm."};

constexpr ClueWords kLossWords = {"criterion.",      "loss_fn.", "dice_loss",    "focal_loss",
                                  "perceptual_loss", "lpips.",   "loss_module.", "metric.",
                                  "metrics.",        ".confmat"};

constexpr NameClue kClues[] = {
    {NameList::kUnexpected,
     kLossWords,
     {.id = "parts-of-loss",
      .rule = &kUnexpectedKey,
      .wrong = kLoader,
      .weight = 0.85,
      .title = "only parts of the loss are extra in the checkpoint",
      .text = "The class of the training run holds its loss as a module, so the loss's weights and "
              "buffers were saved with the model. The model that loads has no loss, or another "
              "version of it. Nothing that the model needs is missing: leave these names out.",
      .decide = "Whether every name on the list belongs to the loss.",
      .command = "shardwright ls CHECKPOINT"}},
    {NameList::kAny,
     {"_extra_state"},
     {.id = "extra-state-missing",
      .rule = &kExtraState,
      .weight = 0.92,
      .title = "only the extra state of layers differs",
      .text = "_extra_state is TransformerEngine's FP8 bookkeeping, not a weight: one version or "
              "backend writes it, another does not. Load without strictness for these names; "
              "delayed scaling calibrates again.",
      .decide = "Whether any name on the list is not an _extra_state.",
      .command = "shardwright ls CHECKPOINT _extra_state"}},
    {NameList::kUnexpected,
     {"_flat_param"},
     {.id = "flat-shard",
      .rule = &kFlatShard,
      .wrong = FaultSide::kCheckpoint,
      .weight = 0.9,
      .title = "the file is one rank's part of an FSDP save",
      .text = "FSDP1 keeps each wrapped module as one row of numbers, _flat_param, of which a rank "
              "holds a part. Loaders of the plain model find none of its tensors. Load all ranks' "
              "files into the same FSDP model and save a full state dict "
              "(StateDictType.FULL_STATE_DICT).",
      .decide = "Whether the other ranks' files (rank_0, rank_1, ...) are there.",
      .command = "shardwright check CHECKPOINT"}},
    {NameList::kMissing,
     {"_flat_param"},
     {.id = "flat-shard",
      .rule = &kMissingKey,
      .wrong = kLoader,
      .weight = 0.9,
      .title = "the model is wrapped by FSDP1, and the checkpoint holds whole tensors",
      .text =
          "An FSDP1 model keeps each wrapped module as one row of numbers, _flat_param, and asks "
          "for these rows. The checkpoint was saved whole, or by another wrapper, and is sound. "
          "Load it under StateDictType.FULL_STATE_DICT (or before the model is wrapped), not "
          "under LOCAL_STATE_DICT or SHARDED_STATE_DICT.",
      .decide = "Whether the checkpoint has the model's own names.",
      .command = "shardwright ls CHECKPOINT"}},
    {NameList::kMissing,
     kGroupedExpertWords,
     {.id = "expert-form",
      .rule = &kMissingKey,
      .wrong = kLoader,
      .weight = 0.9,
      .title = "Megatron's experts are stored in another form than this run builds",
      .text = "Megatron names them in three ways: local_experts.N.linear_fc1 (one by one), "
              "experts.weight1 (grouped GEMM, older) and experts.linear_fc1.weightN (grouped by "
              "TransformerEngine). Set --moe-grouped-gemm and --transformer-impl as in "
              "the run that saved.",
      .decide = "The names of the experts in the checkpoint.",
      .command = "shardwright ls CHECKPOINT experts"}},
    {NameList::kMissing,
     kLegacyMegatronWords,
     {.id = "legacy-names",
      .rule = &kMissingKey,
      .wrong = kLoader,
      .weight = 0.8,
      .title = "Megatron's legacy model asks for its own names",
      .text = "query_key_value and dense_h_to_4h are names of the older classes; those of "
              "Megatron-core are linear_qkv and linear_fc1. The checkpoint is of the other kind, "
              "or of Hugging Face. Leave --use-legacy-models out to load a Megatron-core "
              "checkpoint, or convert it.",
      .decide = "Whether the checkpoint has linear_qkv or query_key_value.",
      .command = "shardwright ls CHECKPOINT"}},
    {NameList::kMissing,
     kNewHeadWords,
     {.id = "new-head",
      .rule = &kMissingKey,
      .wrong = kLoader,
      .weight = 0.85,
      .title = "the model has a new head, which the checkpoint cannot have",
      .text = "A base model was loaded into a class for another task: its head starts at random "
              "values and has to be trained. That is as it should be before a fine-tune. After "
              "one, the head was not saved: it is in the fine-tune's own folder or adapter "
              "(modules_to_save).",
      .decide = "Whether the checkpoint is the base model or the fine-tune.",
      .command = "shardwright ls CHECKPOINT"}},
    {NameList::kMissing,
     {"controlnet_", "zero_conv", "motion_modules.", "temporal_", "to_k_ip", "to_v_ip", "_adapter.",
      "image_proj", "ref_enc"},
     {.id = "new-part",
      .rule = &kMissingKey,
      .wrong = kUnclear,
      .weight = 0.75,
      .title = "the missing names are of a part that is put on a base model",
      .text =
          "A ControlNet, an adapter or motion layers are new where the model starts from a base "
          "checkpoint: then the list is as it should be, and training fills them. To use the "
          "part, load its own file as well, one that was made for this base model.",
      .decide = "Whether the checkpoint is the base model or the part.",
      .command = "shardwright ls CHECKPOINT"}},
    {NameList::kUnexpected,
     {"cls.predictions", "cls.seq_relationship", "vocab_projector.", "vocab_transform.",
      "lm_head.dense", "lm_head.layer_norm", "generator_predictions.", "discriminator_predictions.",
      "mlm_head."},
     {.id = "head-not-used",
      .rule = &kUnexpectedKey,
      .wrong = kLoader,
      .weight = 0.85,
      .title = "the head of the pre-training is not used by this class",
      .text = "The checkpoint has the head that guessed masked words (or the next sentence), and "
              "the class that loads is for another task. That is as it should be: nothing that "
              "the model needs was left out.",
      .decide = "Whether every name on the list is of that head.",
      .command = "shardwright ls CHECKPOINT"}},
    {NameList::kUnexpected,
     {"^ema_", "^ema.", ".ema_", ".ema.", "model_ema", "^swa_", "shadow_params"},
     {.id = "averaged-copy",
      .rule = &kUnexpectedKey,
      .wrong = kLoader,
      .weight = 0.85,
      .title = "the checkpoint has a second, averaged copy of the weights (EMA)",
      .text = "Trainers keep a moving average next to the weights, under names with ema in them. "
              "The model itself is whole: the extra names can be left out. The average is often "
              "the better model: to use it, give its tensors the model's names.",
      .decide = "Whether the same names are there without the prefix.",
      .command = "shardwright ls CHECKPOINT ema"}},
    {NameList::kUnexpected,
     {"^backbone.", "^student.", "^teacher.", "^encoder_q.", "^momentum_encoder.",
      "^target_encoder.", "^detector."},
     {.id = "part-of-larger",
      .rule = &kUnexpectedKey,
      .wrong = kLoader,
      .weight = 0.85,
      .title = "the checkpoint is of a larger model, of which the one that loads is a part",
      .text = "The first part of the names (backbone., student., teacher.) is that of a detector "
              "or of a pre-training run. Nothing was loaded into a backbone alone: load the whole "
              "model (load_from), or take this prefix off (in OpenMMLab: init_cfg with "
              "prefix='backbone.').",
      .decide = "Whether the names without their first part are those of the model.",
      .command = "shardwright ls CHECKPOINT"}},
    {NameList::kUnexpected,
     kUnmergedWords,
     {.id = "unmerged-adapter",
      .rule = &kWrappedNames,
      .wrong = FaultSide::kCheckpoint,
      .weight = 0.95,
      .title = "the model was saved with its adapter still on it",
      .text = "PEFT puts .base_layer., .original_module. and .modules_to_save. into the names of "
              "the modules that it wraps. A rename alone would drop what the adapter learned: call "
              "merge_and_unload() and save again, or save the adapter by itself and load it onto "
              "the base.",
      .decide = "Whether the checkpoint has lora_ names too.",
      .command = "shardwright check CHECKPOINT"}},
    {NameList::kUnexpected,
     kAdapterWords,
     {.id = "adapter",
      .wrong = kLoader,
      .weight = 0.9,
      .title = "the checkpoint holds a LoRA adapter, the model has none",
      .text = "Load the base model first and the adapter into it (PeftModel.from_pretrained).",
      .decide = "Whether an adapter_config.json is next to it.",
      .command = "shardwright ls CHECKPOINT lora_"}},
    {NameList::kMissing,
     {"lora_te1_", "lora_te2_", "lora_te_", "lora_te3_", "text_encoder_2.", "text_encoder.",
      "text_encoder_3."},
     {.id = "part-missing",
      .wrong = kLoader,
      .weight = 0.85,
      .title = "the adapter was trained without this text encoder, or for a model that has none",
      .text =
          "The names that are asked for are of a text encoder (te1, te2: SDXL has two, Stable "
          "Diffusion 1 one). An adapter of the image model alone has no such tensors. Set up the "
          "network as in the training (train the UNet alone, the same base family), or take the "
          "part from a run that had it.",
      .decide = "Which parts (unet, te1, te2) the names in the file have.",
      .command = "shardwright ls CHECKPOINT lora_"}},
    {NameList::kMissing,
     kAdapterWords,
     {.id = "adapter",
      .wrong = kLoader,
      .weight = 0.9,
      .title = "the model has a LoRA adapter, the checkpoint has none",
      .text = "It is a checkpoint of the base model, or one after the adapter was merged. Load it "
              "before the adapter is put on; the adapter's own weights are elsewhere.",
      .decide = "Whether the checkpoint has any lora_ name.",
      .command = "shardwright ls CHECKPOINT lora_"}},
    {NameList::kUnexpected,
     {"q_norm.", "k_norm.", "query_norm.", "key_norm.", "q_layernorm.", "k_layernorm.",
      "query_layernorm.", "key_layernorm."},
     {.id = "other-family",
      .rule = &kUnexpectedKey,
      .wrong = kLoader,
      .weight = 0.85,
      .title = "the checkpoint normalises queries and keys, and the model that loads does not",
      .text = "Qwen3, OLMo 2, Gemma 3 and others have a norm for queries and keys in each layer, "
              "which Qwen2, Llama and their like have not. The class (or the recipe, or the "
              "program's version) is of an older family: build the model of config.json's "
              "architectures. The answers would be nonsense without these norms.",
      .decide = "architectures in config.json against the class that loads.",
      .command = "shardwright info CHECKPOINT"}},
    {NameList::kMissing,
     {"q_norm.", "k_norm.", "query_norm.", "key_norm.", "q_layernorm.", "k_layernorm.",
      "query_layernorm.", "key_layernorm."},
     {.id = "other-family",
      .rule = &kMissingKey,
      .wrong = kLoader,
      .weight = 0.8,
      .title = "the model that loads normalises queries and keys, and the checkpoint does not",
      .text = "Qwen3, OLMo 2 and Gemma 3 have these norms, Qwen2 and Llama have not; Megatron adds "
              "them with --qk-layernorm. The class or the setting is another one than the "
              "checkpoint's, or an export left the norms out.",
      .decide = "architectures in config.json, and whether other layers have the norms.",
      .command = "shardwright ls CHECKPOINT norm"}},
    {NameList::kAny,
     {"q_proj.bias", "k_proj.bias", "v_proj.bias", "qkv.bias", "qkv_proj.bias", "c_attn.bias",
      "linear_qkv.bias", "query.bias", "key.bias", "value.bias"},
     {.id = "attention-bias",
      .rule = &kMissingKey,
      .wrong = kLoader,
      .weight = 0.8,
      .title = "one side has biases in its attention, and the other has none",
      .text = "Qwen2 and GPT-2 have them, Llama and Qwen3 have not; attention_bias, qkv_bias and "
              "add_qkv_bias are the settings. The class or the setting of the run is another one "
              "than the checkpoint's. Weights without their biases answer nonsense.",
      .decide = "The setting in config.json, and whether the checkpoint has any bias.",
      .command = "shardwright ls CHECKPOINT bias"}},
    {NameList::kUnexpected,
     kScaleWords,
     {.id = "quantised",
      .wrong = kLoader,
      .weight = 0.88,
      .title = "these layers are quantised in the checkpoint and not in the model",
      .text = "Scales and codes are next to the weights. Load with the quantisation of the save "
              "(for these layers too, where only some are named), or dequantise first.",
      .decide = "quantization_config in config.json.",
      .command = "shardwright ls CHECKPOINT"}},
    {NameList::kMissing,
     {"g_idx"},
     {.id = "older-format",
      .wrong = kLoader,
      .weight = 0.9,
      .title = "the checkpoint is GPTQ without its order of columns",
      .text = "g_idx numbers the group of each column. The first GPTQ programs did not write it, "
              "nor do some without act-order, and then the columns are in their plain order. Take "
              "a loader that fills it in (or strict=False where it does), or a newer copy.",
      .decide = "Whether every missing name is a g_idx, and desc_act in quantize_config.json.",
      .command = "shardwright ls CHECKPOINT qzeros"}},
    {NameList::kMissing,
     kScaleWords,
     {.id = "quantised",
      .wrong = kLoader,
      .weight = 0.88,
      .title = "the model is quantised, the checkpoint is not",
      .text = "The model asks for scales and codes that a checkpoint in full precision does not "
              "have. Load first and quantise then.",
      .decide = "quantization_config in config.json, and the dtypes of the checkpoint.",
      .command = "shardwright ls CHECKPOINT"}},
    {NameList::kMissing,
     kMtpWords,
     {.id = "mtp-lost",
      .rule = &kConfigAnnounces,
      .wrong = FaultSide::kCheckpoint,
      .weight = 0.9,
      .title = "the layers for multi-token prediction are not in the checkpoint",
      .text = "config.json announces them (num_nextn_predict_layers, mtp_num_hidden_layers), and "
              "many exports and quantisers leave their tensors out. The model itself is whole: run "
              "it without speculative decoding, or take the layers from the original.",
      .decide = "Whether the checkpoint has names of that layer.",
      .command = "shardwright check CHECKPOINT"}},
    {NameList::kUnexpected,
     kMtpWords,
     {.id = "mtp-extra",
      .wrong = kLoader,
      .weight = 0.9,
      .title = "the model that loads does not build the layers for multi-token prediction",
      .text = "The checkpoint has them, and this program (or this class) has no use for them. They "
              "serve speculative decoding alone: the model is whole without them.",
      .decide = "Whether every name on the list is of those layers.",
      .command = "shardwright ls CHECKPOINT mtp"}},
    {NameList::kMissing,
     kModalityWords,
     {.id = "part-missing",
      .rule = &kMissingKey,
      .wrong = kUnclear,
      .weight = 0.8,
      .title = "the part of the model for images or sound is not found in the checkpoint",
      .text =
          "A text-only export or fine-tune saved the language model alone, or the part is there "
          "under another prefix: transformers moved it (visual., model.visual., vision_tower.) "
          "between versions. If only a few of its tensors are named, a setting of config.json "
          "builds these and the model was trained without.",
      .decide = "Whether the checkpoint has names with the same ending: then it is the prefix.",
      .command = "shardwright ls CHECKPOINT"}},
    {NameList::kUnexpected,
     kModalityWords,
     {.id = "part-extra",
      .wrong = kLoader,
      .weight = 0.8,
      .title = "the checkpoint has a part for images or sound, and the model that loads has none",
      .text = "A program for text alone, or a class of the language model, is given a multimodal "
              "checkpoint. Nothing is wrong on disk: use the program or the class of the whole "
              "model. If it has the part, its names have another prefix there.",
      .decide = "architectures in config.json against the class that loads.",
      .command = "shardwright ls CHECKPOINT"}},
    {NameList::kUnexpected,
     kHeadWords,
     {.id = "tied",
      .rule = &kTiedWeights,
      .wrong = kUnclear,
      .weight = 0.8,
      .title = "the checkpoint stores an output layer that the model ties to its embedding",
      .text = "config.json (tie_word_embeddings, or its default) says that embedding and output "
              "layer are one tensor, so the model has no place for a second one. If both are "
              "equal, leave it out; if they differ, the setting is wrong.",
      .decide = "Whether the two tensors are equal, and tie_word_embeddings.",
      .command = "shardwright check CHECKPOINT"}},
    {NameList::kMissing,
     {"decoupled_weight_decay"},
     {.id = "older-optimizer",
      .rule = &kPortability,
      .weight = 0.95,
      .title = "the optimizer was saved by torch 2.6 or older",
      .text = "torch 2.7 added decoupled_weight_decay to AdamW's groups. The states are good: "
              "load with allow_partial_load, or with the torch that saved.",
      .decide = "torch versions of both runs."}},
    {NameList::kAny,
     {"inv_freq", "position_ids", "masked_bias", "attn.bias", "freqs_cis", "num_batches_tracked",
      "relative_position_index", "attn_mask"},
     {.id = "buffer",
      .wrong = kUnclear,
      .weight = 0.85,
      .title = "buffers that the model can compute itself",
      .text = "Rotary frequencies, position numbers and masks were saved by some versions and not "
              "by others. They carry nothing that was learned.",
      .decide = "Whether any name on the list is a weight.",
      .command = "shardwright ls CHECKPOINT"}},
    {NameList::kMissing,
     {"lm_head.weight", "output_layer.weight", "embed_out.weight", "embed_tokens.weight",
      "word_embeddings.weight", "shared.weight"},
     {.id = "tied",
      .rule = &kTiedWeights,
      .weight = 0.7,
      .title = "a tied weight is stored once, under its other name",
      .text = "Embedding and output layer can be one tensor; then a checkpoint has one of the two. "
              "If the configuration ties them nothing is missing; if not, the output layer is "
              "lost.",
      .decide = "tie_word_embeddings (Megatron: untie_embeddings_and_output_weights) of both "
                "runs."}},
    {NameList::kMissing,
     {"dp_rank_", "rng_state", "rerun_state_machine_state", "random_states"},
     {.id = "per-rank-object",
      .wrong = kLoader,
      .weight = 0.9,
      .title = "an object that each rank keeps for itself, and fewer ranks saved",
      .text =
          "Data loaders, random numbers and the like are saved once per rank, under its number: "
          "a run with more ranks (or another program) asks for numbers that nobody saved. The "
          "weights are not in question; leave the object out of the load.",
      .decide = "The highest number that the checkpoint has, and the ranks of both runs.",
      .command = "shardwright ls CHECKPOINT"}},
    {NameList::kMissing,
     {"lr_scheduler", "scheduler.", "train_state", "dataloader", "sampler.", "trainer.",
      "num_steps", "global_step", "last_epoch"},
     {.id = "no-run-state",
      .rule = &kMissingKey,
      .wrong = kLoader,
      .weight = 0.88,
      .title = "the checkpoint has no state of the run's schedule or data under this name",
      .text =
          "It is the state of a scheduler, a data loader or the trainer, not a weight: the save "
          "was of the weights alone, of another version of the trainer, or without this part. "
          "Leave the part out of the load (and start it anew), or resume from a full save.",
      .decide = "Which parts besides the model the checkpoint has.",
      .command = "shardwright ls CHECKPOINT"}},
    {NameList::kMissing,
     {"optimizer.state.0.", "optim.state.0.", "optimizer.param_groups", "optim.param_groups"},
     {.id = "optimizer-form",
      .rule = &kMissingKey,
      .wrong = kLoader,
      .weight = 0.8,
      .title = "the optimizer's states are asked for by number, and were saved in another form",
      .text = "torch.optim numbers its states (state.0.step); torch.distributed.checkpoint saves "
              "them under the parameters' names, flat or nested. The run that loads does not "
              "convert between them as the run that saved did: use set_optimizer_state_dict and "
              "the same planner (DefaultLoadPlanner) in both, or update the trainer. The weights "
              "can be loaded without them.",
      .decide = "What the checkpoint's names of optimizer states look like.",
      .command = "shardwright ls CHECKPOINT exp_avg"}},
    {NameList::kMissing,
     {"exp_avg", "optimizer.", "optim.", ".momentum", "master_param", "fp32_param"},
     {.id = "no-optimizer-state",
      .rule = &kHalfPair,
      .weight = 0.6,
      .title = "the checkpoint has no optimizer state for these",
      .text = "It was saved without the optimizer, with another one, under another prefix "
              "(optimizer. against optim., chained_0.), or before these parameters had their first "
              "step (frozen layers have none).",
      .decide = "Which optimizer names the checkpoint has.",
      .command = "shardwright ls CHECKPOINT exp_avg"}},
    {NameList::kUnexpected,
     {"exp_avg", "optimizer.", "optim.", ".momentum", "master_param", "fp32_param"},
     {.id = "optimizer-in-model-load",
      .wrong = kLoader,
      .weight = 0.75,
      .title = "optimizer states in a load of the model alone",
      .text = "The checkpoint has the optimizer too. Nothing is wrong on disk.",
      .decide = "Whether names of the model are on the list.",
      .command = "shardwright ls CHECKPOINT"}},
    {NameList::kAny,
     {".experts.gate_up_proj", ".experts.down_proj", ".experts.gate_and_up_projs", ".experts.w13"},
     {.id = "fused-experts",
      .wrong = kUnclear,
      .weight = 0.8,
      .title = "experts are stacked in one tensor on one side and stored one by one on the other",
      .text = "transformers 5 fuses experts in memory (gate_up_proj) and stores them one by one "
              "(experts.E.gate_proj.weight); older versions do neither. The conversion is the "
              "loader's.",
      .decide = "Whether the other list has names with a number after \"experts.\".",
      .command = "shardwright ls CHECKPOINT experts"}},
    {NameList::kUnexpected,
     {"conv.bias", "conv1.bias", "conv2.bias", "conv3.bias", "downsample.0.bias", "conv_bias"},
     {.id = "bias-extra",
      .rule = &kUnexpectedKey,
      .wrong = kLoader,
      .weight = 0.75,
      .title = "the checkpoint has biases in layers that the model builds without",
      .text = "A convolution before a batch norm needs none, and some programs save one: then "
              "nothing is lost by leaving it out (if it is 0, or was folded into the norm). "
              "Otherwise a setting (bias, use_bias) or the class is another one.",
      .decide = "Whether the biases are 0: `shardwright stats` prints their range.",
      .command = "shardwright stats CHECKPOINT bias"}},
    {NameList::kMissing,
     {".bias"},
     {.id = "bias-missing",
      .rule = &kMissingKey,
      .wrong = kLoader,
      .weight = 0.75,
      .title = "the model builds biases that the checkpoint does not have",
      .text = "A setting of the config (bias, use_bias, attention_bias) or the class is another "
              "one than at the save. Without values from the file they start at 0 or at random.",
      .decide = "The setting in both configs, and whether the checkpoint has any bias.",
      .command = "shardwright ls CHECKPOINT bias"}},
};

}  // namespace

std::span<const NameClue> name_clues() {
  return kClues;
}

}  // namespace shw
