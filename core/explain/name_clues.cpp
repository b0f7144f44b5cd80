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
      .title = "the only extra tensors in the checkpoint belong to the loss",
      .text = "The class of the training run holds its loss as a module, so the loss's weights and "
              "buffers were saved with the model. The loading model has no loss module, or a "
              "different version. Nothing that the model needs is missing: ignore these names.",
      .decide = "Check that every name in the list belongs to the loss.",
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
      .decide = "Check whether any name in the list is not an _extra_state.",
      .command = "shardwright ls CHECKPOINT _extra_state"}},
    {NameList::kUnexpected,
     {"_flat_param"},
     {.id = "flat-shard",
      .rule = &kFlatShard,
      .wrong = FaultSide::kCheckpoint,
      .weight = 0.9,
      .title = "the file is one rank's shard of an FSDP save",
      .text =
          "FSDP1 keeps each wrapped module as one flat vector, _flat_param, and each rank holds a "
          "shard of it. Loaders of the plain model find none of its tensors. Load all ranks' files "
          "into the same FSDP model and save a full state dict (StateDictType.FULL_STATE_DICT).",
      .decide = "Check whether the other ranks' files (rank_0, rank_1, ...) are there.",
      .command = "shardwright check CHECKPOINT"}},
    {NameList::kMissing,
     {"_flat_param"},
     {.id = "flat-shard",
      .rule = &kMissingKey,
      .wrong = kLoader,
      .weight = 0.9,
      .title = "the model is wrapped by FSDP1, but the checkpoint holds full tensors",
      .text = "An FSDP1 model keeps each wrapped module as one flat vector, _flat_param, and looks "
              "for these. The checkpoint was saved with full tensors, or by a different wrapper, "
              "and is fine. Load it under StateDictType.FULL_STATE_DICT (or before the model is "
              "wrapped), not under LOCAL_STATE_DICT or SHARDED_STATE_DICT.",
      .decide = "Check whether the checkpoint has the model's plain names.",
      .command = "shardwright ls CHECKPOINT"}},
    {NameList::kMissing,
     kGroupedExpertWords,
     {.id = "expert-form",
      .rule = &kMissingKey,
      .wrong = kLoader,
      .weight = 0.9,
      .title = "Megatron's experts are stored in a different form from this run's",
      .text = "Megatron names them in three ways: local_experts.N.linear_fc1 (one by one), "
              "experts.weight1 (grouped GEMM, older) and experts.linear_fc1.weightN (grouped by "
              "TransformerEngine). Set --moe-grouped-gemm and --transformer-impl as in "
              "the run that saved.",
      .decide = "Check the names of the experts in the checkpoint.",
      .command = "shardwright ls CHECKPOINT experts"}},
    {NameList::kMissing,
     kLegacyMegatronWords,
     {.id = "legacy-names",
      .rule = &kMissingKey,
      .wrong = kLoader,
      .weight = 0.8,
      .title = "Megatron's legacy model looks for its old names",
      .text = "query_key_value and dense_h_to_4h are names of the older classes; those of "
              "Megatron-core are linear_qkv and linear_fc1. The checkpoint uses the other names, "
              "or those of Hugging Face. Remove --use-legacy-models to load a Megatron-core "
              "checkpoint, or convert it.",
      .decide = "Check whether the checkpoint has linear_qkv or query_key_value.",
      .command = "shardwright ls CHECKPOINT"}},
    {NameList::kMissing,
     kNewHeadWords,
     {.id = "new-head",
      .rule = &kMissingKey,
      .wrong = kLoader,
      .weight = 0.85,
      .title = "the model has a new head, which the checkpoint cannot have",
      .text = "A base model was loaded into a class for another task: its head starts at random "
              "values and has to be trained. This is expected before fine-tuning. After "
              "fine-tuning it means that the head was not saved: look in the fine-tune's folder or "
              "adapter (modules_to_save).",
      .decide = "Check whether the checkpoint is the base model or the fine-tune.",
      .command = "shardwright ls CHECKPOINT"}},
    {NameList::kMissing,
     {"controlnet_", "zero_conv", "motion_modules.", "temporal_", "to_k_ip", "to_v_ip", "_adapter.",
      "image_proj", "ref_enc"},
     {.id = "new-part",
      .rule = &kMissingKey,
      .wrong = kUnclear,
      .weight = 0.75,
      .title = "the missing names belong to an add-on for a base model",
      .text = "A ControlNet, an adapter or motion layers are new when training starts from a base "
              "checkpoint: then the list is expected, and training fills them. To use a trained "
              "add-on, load its file as well; it must be made for this base model.",
      .decide = "Check whether the checkpoint is the base model or the add-on.",
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
      .text = "The checkpoint has the head that predicted masked words (or the next sentence), and "
              "the loading class is for a different task. This is expected: nothing that the model "
              "needs is missing.",
      .decide = "Check that every name in the list belongs to that head.",
      .command = "shardwright ls CHECKPOINT"}},
    {NameList::kUnexpected,
     {"^ema_", "^ema.", ".ema_", ".ema.", "model_ema", "^swa_", "shadow_params"},
     {.id = "averaged-copy",
      .rule = &kUnexpectedKey,
      .wrong = kLoader,
      .weight = 0.85,
      .title = "the checkpoint has a second, averaged copy of the weights (EMA)",
      .text = "Trainers keep a moving average next to the weights, under names with ema in them. "
              "The model itself is complete: ignore the extra names. The average is often the "
              "better model: to use it, rename its tensors to the model's names.",
      .decide = "Check whether the same names are there without the prefix.",
      .command = "shardwright ls CHECKPOINT ema"}},
    {NameList::kUnexpected,
     {"^backbone.", "^student.", "^teacher.", "^encoder_q.", "^momentum_encoder.",
      "^target_encoder.", "^detector."},
     {.id = "part-of-larger",
      .rule = &kUnexpectedKey,
      .wrong = kLoader,
      .weight = 0.85,
      .title = "the checkpoint holds a larger model, and the loading model is a part of it",
      .text =
          "The first part of the names (backbone., student., teacher.) comes from a detector or a "
          "pre-training run. No weight was loaded into the plain backbone: load the whole model "
          "(load_from), or remove this prefix (in OpenMMLab: init_cfg with prefix='backbone.').",
      .decide = "Check whether the names without this prefix are the model's.",
      .command = "shardwright ls CHECKPOINT"}},
    {NameList::kUnexpected,
     kUnmergedWords,
     {.id = "unmerged-adapter",
      .rule = &kWrappedNames,
      .wrong = FaultSide::kCheckpoint,
      .weight = 0.95,
      .title = "the model was saved with its adapter unmerged",
      .text =
          "PEFT adds .base_layer., .original_module. and .modules_to_save. to the names of wrapped "
          "modules. Renaming alone would lose the adapter's training: call merge_and_unload() and "
          "save again, or save the adapter separately and load it onto the base.",
      .decide = "Check whether the checkpoint has lora_ names too.",
      .command = "shardwright check CHECKPOINT"}},
    {NameList::kUnexpected,
     kAdapterWords,
     {.id = "adapter",
      .wrong = kLoader,
      .weight = 0.9,
      .title = "the checkpoint holds a LoRA adapter, the model has none",
      .text = "Load the base model first and the adapter into it (PeftModel.from_pretrained).",
      .decide = "Check whether an adapter_config.json is next to it.",
      .command = "shardwright ls CHECKPOINT lora_"}},
    {NameList::kMissing,
     {"lora_te1_", "lora_te2_", "lora_te_", "lora_te3_", "text_encoder_2.", "text_encoder.",
      "text_encoder_3."},
     {.id = "part-missing",
      .wrong = kLoader,
      .weight = 0.85,
      .title = "the adapter was trained without this text encoder, or for a model that has none",
      .text = "The expected names belong to a text encoder (te1, te2: SDXL has two, Stable "
              "Diffusion 1 one). An adapter for only the image model has no such tensors. "
              "Configure the network as in training (only the UNet, the same base family), or take "
              "the text encoder part from a run that had it.",
      .decide = "Check which parts (unet, te1, te2) the names in the file have.",
      .command = "shardwright ls CHECKPOINT lora_"}},
    {NameList::kMissing,
     kAdapterWords,
     {.id = "adapter",
      .wrong = kLoader,
      .weight = 0.9,
      .title = "the model has a LoRA adapter, the checkpoint has none",
      .text = "The checkpoint is the base model, or the adapter was already merged. Load it before "
              "adding the adapter; the adapter's weights are in another file.",
      .decide = "Check whether the checkpoint has any lora_ name.",
      .command = "shardwright ls CHECKPOINT lora_"}},
    {NameList::kUnexpected,
     {"q_norm.", "k_norm.", "query_norm.", "key_norm.", "q_layernorm.", "k_layernorm.",
      "query_layernorm.", "key_layernorm."},
     {.id = "other-family",
      .rule = &kUnexpectedKey,
      .wrong = kLoader,
      .weight = 0.85,
      .title = "the checkpoint has query and key norms, but the loading model does not",
      .text = "Qwen3, OLMo 2, Gemma 3 and others have a norm for queries and keys in each layer, "
              "which Qwen2, Llama and similar models do not have. The class (or recipe, or program "
              "version) is for an older family: build the class in config.json's architectures. "
              "Without these norms the model outputs garbage.",
      .decide = "Compare architectures in config.json with the loading class.",
      .command = "shardwright info CHECKPOINT"}},
    {NameList::kMissing,
     {"q_norm.", "k_norm.", "query_norm.", "key_norm.", "q_layernorm.", "k_layernorm.",
      "query_layernorm.", "key_layernorm."},
     {.id = "other-family",
      .rule = &kMissingKey,
      .wrong = kLoader,
      .weight = 0.8,
      .title = "the loading model has query and key norms, but the checkpoint does not",
      .text = "Qwen3, OLMo 2 and Gemma 3 have these norms, Qwen2 and Llama do not; Megatron adds "
              "them with --qk-layernorm. The class or setting differs from the checkpoint's, or an "
              "export left the norms out. Build the class in config.json's architectures.",
      .decide = "Check architectures in config.json, and whether other layers have the norms.",
      .command = "shardwright ls CHECKPOINT norm"}},
    {NameList::kAny,
     {"q_proj.bias", "k_proj.bias", "v_proj.bias", "qkv.bias", "qkv_proj.bias", "c_attn.bias",
      "linear_qkv.bias", "query.bias", "key.bias", "value.bias"},
     {.id = "attention-bias",
      .rule = &kMissingKey,
      .wrong = kLoader,
      .weight = 0.8,
      .title = "one side has attention biases, and the other does not",
      .text = "Qwen2 and GPT-2 have them, Llama and Qwen3 do not; attention_bias, qkv_bias and "
              "add_qkv_bias are the settings. The class or setting of the run differs from the "
              "checkpoint's: set it as in the save. Without its biases the model outputs garbage.",
      .decide = "Check the setting in config.json, and whether the checkpoint has any bias.",
      .command = "shardwright ls CHECKPOINT bias"}},
    {NameList::kUnexpected,
     kScaleWords,
     {.id = "quantised",
      .wrong = kLoader,
      .weight = 0.88,
      .title = "these layers are quantised in the checkpoint but not in the model",
      .text = "Scales and codes are next to the weights. Load with the quantisation of the save "
              "(for these layers too, where only some are named), or dequantise first.",
      .decide = "Check quantization_config in config.json.",
      .command = "shardwright ls CHECKPOINT"}},
    {NameList::kMissing,
     {"g_idx"},
     {.id = "older-format",
      .wrong = kLoader,
      .weight = 0.9,
      .title = "the GPTQ checkpoint has no g_idx (column order)",
      .text = "g_idx gives the group of each column. The first GPTQ programs did not write it, nor "
              "do some without act-order; the columns are then in their plain order. Use a loader "
              "that fills it in (with strict=False if it does), or a newer copy.",
      .decide =
          "Check that every missing name is a g_idx, and check desc_act in quantize_config.json.",
      .command = "shardwright ls CHECKPOINT qzeros"}},
    {NameList::kMissing,
     kScaleWords,
     {.id = "quantised",
      .wrong = kLoader,
      .weight = 0.88,
      .title = "the model is quantised, but the checkpoint is not",
      .text = "The model needs scales and codes that a full-precision checkpoint does not have. "
              "Load first, then quantise.",
      .decide = "Check quantization_config in config.json, and the dtypes of the checkpoint.",
      .command = "shardwright ls CHECKPOINT"}},
    {NameList::kMissing,
     kMtpWords,
     {.id = "mtp-lost",
      .rule = &kConfigAnnounces,
      .wrong = FaultSide::kCheckpoint,
      .weight = 0.9,
      .title = "the layers for multi-token prediction are not in the checkpoint",
      .text = "config.json lists them (num_nextn_predict_layers, mtp_num_hidden_layers), and many "
              "exports and quantisers leave their tensors out. The model itself is complete: run "
              "it without speculative decoding, or take the layers from the original.",
      .decide = "Check whether the checkpoint has names of that layer.",
      .command = "shardwright check CHECKPOINT"}},
    {NameList::kUnexpected,
     kMtpWords,
     {.id = "mtp-extra",
      .wrong = kLoader,
      .weight = 0.9,
      .title = "the loading model does not build the multi-token prediction layers",
      .text =
          "The checkpoint has them, but this program (or class) does not use them. They are "
          "only for speculative decoding: the model is complete without them. Ignore these names.",
      .decide = "Check that every name in the list belongs to those layers.",
      .command = "shardwright ls CHECKPOINT mtp"}},
    {NameList::kMissing,
     kModalityWords,
     {.id = "part-missing",
      .rule = &kMissingKey,
      .wrong = kUnclear,
      .weight = 0.8,
      .title = "the image or audio part of the model is not found in the checkpoint",
      .text =
          "A text-only export or fine-tune saved only the language model, or the part is there "
          "under a different prefix: transformers moved it (visual., model.visual., "
          "vision_tower.) between versions. If only a few of its tensors are named, a setting "
          "in config.json adds these but the model was trained without them. Update the program, "
          "or take config.json and the missing part from the original.",
      .decide =
          "Check whether the checkpoint has names with the same ending: then the prefix differs.",
      .command = "shardwright ls CHECKPOINT"}},
    {NameList::kUnexpected,
     kModalityWords,
     {.id = "part-extra",
      .wrong = kLoader,
      .weight = 0.8,
      .title = "the checkpoint has an image or audio part, but the loading model does not",
      .text = "A text-only program, or the language model's class, is loading a multimodal "
              "checkpoint. Nothing is wrong on disk: use the program or class of the whole model. "
              "If that has the part, its names have a different prefix.",
      .decide = "Compare architectures in config.json with the loading class.",
      .command = "shardwright ls CHECKPOINT"}},
    {NameList::kUnexpected,
     kHeadWords,
     {.id = "tied",
      .rule = &kTiedWeights,
      .wrong = kUnclear,
      .weight = 0.8,
      .title = "the checkpoint has an output layer that the model ties to its embedding",
      .text = "config.json (tie_word_embeddings, or its default) says that embedding and output "
              "layer are one tensor, so the model has no separate output layer. If both are equal, "
              "ignore it; if they differ, the setting is wrong.",
      .decide = "Check whether the two tensors are equal, and tie_word_embeddings.",
      .command = "shardwright check CHECKPOINT"}},
    {NameList::kMissing,
     {"decoupled_weight_decay"},
     {.id = "older-optimizer",
      .rule = &kPortability,
      .weight = 0.95,
      .title = "the optimizer was saved by torch 2.6 or older",
      .text = "torch 2.7 added decoupled_weight_decay to AdamW's groups. The states are fine: load "
              "with allow_partial_load, or with the torch version that saved.",
      .decide = "Compare the torch versions of both runs."}},
    {NameList::kAny,
     {"inv_freq", "position_ids", "masked_bias", "attn.bias", "freqs_cis", "num_batches_tracked",
      "relative_position_index", "attn_mask"},
     {.id = "buffer",
      .wrong = kUnclear,
      .weight = 0.85,
      .title = "the names are buffers that the model computes",
      .text = "Rotary frequencies, position numbers and masks were saved by some versions and not "
              "by others. They hold no trained values: delete these names from the state "
              "dict before the load. strict=False would hide other differences too.",
      .decide = "Check whether any name in the list is a weight.",
      .command = "shardwright ls CHECKPOINT"}},
    {NameList::kMissing,
     {"lm_head.weight", "output_layer.weight", "embed_out.weight", "embed_tokens.weight",
      "word_embeddings.weight", "shared.weight"},
     {.id = "tied",
      .rule = &kTiedWeights,
      .weight = 0.7,
      .title = "a tied weight is stored once, under its other name",
      .text =
          "Embedding and output layer can be one tensor; then a checkpoint has one of the two. If "
          "the configuration ties them, nothing is missing: call tie_weights(), or save it under "
          "both names. If not, the output layer is lost.",
      .decide = "Compare tie_word_embeddings (Megatron: untie_embeddings_and_output_weights) of "
                "both runs."}},
    {NameList::kMissing,
     {"dp_rank_", "rng_state", "rerun_state_machine_state", "random_states"},
     {.id = "per-rank-object",
      .wrong = kLoader,
      .weight = 0.9,
      .title = "a per-rank object is missing, because fewer ranks saved",
      .text = "Data loaders, random numbers and the like are saved once per rank, under its "
              "number: a run with more ranks (or another program) looks for ranks that did not "
              "save. The weights are not the problem; skip the object on load.",
      .decide = "Compare the highest rank number in the checkpoint with the ranks of both runs.",
      .command = "shardwright ls CHECKPOINT"}},
    {NameList::kMissing,
     {"lr_scheduler", "scheduler.", "train_state", "dataloader", "sampler.", "trainer.",
      "num_steps", "global_step", "last_epoch"},
     {.id = "no-run-state",
      .rule = &kMissingKey,
      .wrong = kLoader,
      .weight = 0.88,
      .title = "the checkpoint has no scheduler or data loader state under this name",
      .text = "It is the state of a scheduler, a data loader or the trainer, not a weight: only "
              "the weights were saved, or a different trainer version saved, or this part was left "
              "out. Skip it on load (it starts fresh), or resume from a full save.",
      .decide = "Check which parts besides the model the checkpoint has.",
      .command = "shardwright ls CHECKPOINT"}},
    {NameList::kMissing,
     {"optimizer.state.0.", "optim.state.0.", "optimizer.param_groups", "optim.param_groups"},
     {.id = "optimizer-form",
      .rule = &kMissingKey,
      .wrong = kLoader,
      .weight = 0.8,
      .title = "the optimizer states are expected by number, but were saved by name",
      .text = "torch.optim numbers its states (state.0.step); torch.distributed.checkpoint saves "
              "them under the parameters' names, flat or nested. The run that loads does not "
              "convert between them as the run that saved did: use set_optimizer_state_dict and "
              "the same planner (DefaultLoadPlanner) in both, or update the trainer. The weights "
              "can be loaded without them.",
      .decide = "Look at the names of the optimizer states in the checkpoint.",
      .command = "shardwright ls CHECKPOINT exp_avg"}},
    {NameList::kMissing,
     {"exp_avg", "optimizer.", "optim.", ".momentum", "master_param", "fp32_param"},
     {.id = "no-optimizer-state",
      .rule = &kHalfPair,
      .weight = 0.6,
      .title = "the checkpoint has no optimizer state for these",
      .text = "It was saved without the optimizer, with a different one, under a different prefix "
              "(optimizer. against optim., chained_0.), or before these parameters had their first "
              "step (frozen layers have none). Load only the weights, and start the optimizer from "
              "scratch.",
      .decide = "Check which optimizer names the checkpoint has.",
      .command = "shardwright ls CHECKPOINT exp_avg"}},
    {NameList::kUnexpected,
     {"exp_avg", "optimizer.", "optim.", ".momentum", "master_param", "fp32_param"},
     {.id = "optimizer-in-model-load",
      .wrong = kLoader,
      .weight = 0.75,
      .title = "the load wants only the model, but the checkpoint has optimizer states too",
      .text = "Nothing is wrong on disk: pass only the model's part to the load.",
      .decide = "Check whether names of the model are in the list.",
      .command = "shardwright ls CHECKPOINT"}},
    {NameList::kAny,
     {".experts.gate_up_proj", ".experts.down_proj", ".experts.gate_and_up_projs", ".experts.w13"},
     {.id = "fused-experts",
      .wrong = kUnclear,
      .weight = 0.8,
      .title = "one side stacks experts in one tensor, the other stores them separately",
      .text = "transformers 5 fuses experts in memory (gate_up_proj) and stores them separately "
              "(experts.E.gate_proj.weight); older versions do neither. The loader must convert: "
              "update it, or use the version that saved.",
      .decide = "Check whether the other list has names with a number after \"experts.\".",
      .command = "shardwright ls CHECKPOINT experts"}},
    {NameList::kUnexpected,
     {"conv.bias", "conv1.bias", "conv2.bias", "conv3.bias", "downsample.0.bias", "conv_bias"},
     {.id = "bias-extra",
      .rule = &kUnexpectedKey,
      .wrong = kLoader,
      .weight = 0.75,
      .title = "the checkpoint has biases in layers that the model builds without",
      .text = "A convolution before a batch norm needs no bias, but some programs save one: it can "
              "then be ignored (if it is 0, or was folded into the norm). Otherwise a setting "
              "(bias, use_bias) or the class differs.",
      .decide = "Check whether the biases are 0: `shardwright stats` prints their range.",
      .command = "shardwright stats CHECKPOINT bias"}},
    {NameList::kMissing,
     {".bias"},
     {.id = "bias-missing",
      .rule = &kMissingKey,
      .wrong = kLoader,
      .weight = 0.75,
      .title = "the model builds biases that the checkpoint does not have",
      .text =
          "A setting of the config (bias, use_bias, attention_bias) or the class differs from "
          "the save: set it as there. Without values from the file they start at 0 or at random.",
      .decide =
          "Compare the setting in both configs, and check whether the checkpoint has any bias.",
      .command = "shardwright ls CHECKPOINT bias"}},
};

}  // namespace

std::span<const NameClue> name_clues() {
  return kClues;
}

}  // namespace shw
