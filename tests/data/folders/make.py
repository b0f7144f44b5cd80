import json,pathlib,torch
from safetensors.torch import save_file
root = pathlib.Path(__file__).parent
def f(*s): return torch.arange(torch.Size(s).numel(),dtype=torch.float32).reshape(s)
n=root/'nanotron/10'; n.mkdir(parents=True)
(root/'nanotron/latest.txt').write_text('10')
(n/'checkpoint_metadata.json').write_text('{"version":"1.4","tp":2,"dp":1}')
q=n/'model/model/decoder/0/pp_block/attn/qkv_proj'; q.mkdir(parents=True)
for r,(pairs,v) in enumerate((("0,1,None|0,1,None#0,1,None|0,1,None;1,2,None|0,1,None#2,3,None|0,1,None",[1,3]),("0,1,None|0,1,None#1,2,None|0,1,None;1,2,None|0,1,None#3,4,None|0,1,None",[2,4]))):
    save_file({'data':torch.tensor(v,dtype=torch.float32).reshape(2,1)},q/f'model_weight_pp-rank-0-of-1_tp-rank-{r}-of-2.safetensors',metadata={'version':'1.4','local_global_slices_pairs':pairs,'unsharded_shape':'(4, 1)'})
p=n/'model/model/final_layer_norm/pp_block'; p.mkdir(parents=True)
save_file({'data':f(2)},p/'model_weight.safetensors')
t=root/'sharded_state'; t.mkdir()
(t/'config.json').write_text(json.dumps({"architectures":["LlamaForCausalLM"],"model_type":"llama","hidden_size":8,"intermediate_size":12,"num_attention_heads":2,"num_key_value_heads":2,"num_hidden_layers":1,"vocab_size":6}))
for r in range(2):
    save_file({'model.embed_tokens.weight':f(3,8)+100*r,'model.layers.0.self_attn.qkv_proj.weight':f(12,8)+r,'model.layers.0.self_attn.o_proj.weight':f(8,4)+r,'model.layers.0.mlp.gate_up_proj.weight':f(12,8)+r,'model.layers.0.mlp.down_proj.weight':f(8,6)+r,'model.norm.weight':f(8)},t/f'model-rank-{r}-part-0.safetensors')
m=root/'meta_llama'; m.mkdir()
(m/'params.json').write_text(json.dumps({"dim":8,"n_layers":1,"n_heads":2,"vocab_size":6,"norm_eps":1e-5}))
for r in range(2):
    torch.save({'tok_embeddings.weight':f(6,4)+r,'norm.weight':f(8),'output.weight':f(3,8)+r,'layers.0.attention.wq.weight':f(4,8)+r,'layers.0.attention.wk.weight':f(4,8)+r,'layers.0.attention.wv.weight':f(4,8)+r,'layers.0.attention.wo.weight':f(8,4)+r,'layers.0.feed_forward.w1.weight':f(6,8)+r,'layers.0.feed_forward.w2.weight':f(8,6)+r,'layers.0.feed_forward.w3.weight':f(6,8)+r,'layers.0.attention_norm.weight':f(8),'layers.0.ffn_norm.weight':f(8)},m/f'consolidated.{r:02}.pth')
s=root/'one_file'; s.mkdir()
save_file({'w':f(3,4),'b':f(3).half()},s/'model.safetensors')
