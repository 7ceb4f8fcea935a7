"""Published models by their configurations, and what their publishers say they count."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class PublishedModel:
    name: str
    model_type: str
    architecture: str
    parameters: int  # as the model card or the weight files say; 0 where they say it in billions only
    config: dict = field(default_factory=dict)

    def as_json(self) -> dict:
        return {"model_type": self.model_type, "architectures": [self.architecture], **self.config}


def decoder(width, inner, layers, heads, key_value_heads, vocabulary, tied=False, **others) -> dict:
    return {
        "hidden_size": width,
        "intermediate_size": inner,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": key_value_heads,
        "vocab_size": vocabulary,
        "tie_word_embeddings": tied,
        **others,
    }


LLAMA = ("llama", "LlamaForCausalLM")
OPT = ("opt", "OPTForCausalLM")
T5 = ("t5", "T5ForConditionalGeneration")
WHISPER = ("whisper", "WhisperForConditionalGeneration")


def opt(width, inner, layers, heads, **others) -> dict:
    return {
        "hidden_size": width,
        "ffn_dim": inner,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "vocab_size": 50272,
        "word_embed_proj_dim": width,
        **others,
    }


def bert(width, inner, layers, heads) -> dict:
    return {
        "hidden_size": width,
        "intermediate_size": inner,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "vocab_size": 30522,
    }


def whisper(width, layers, heads, bins=80, vocabulary=51865) -> dict:
    return {
        "d_model": width,
        "encoder_layers": layers,
        "decoder_layers": layers,
        "encoder_attention_heads": heads,
        "decoder_attention_heads": heads,
        "encoder_ffn_dim": 4 * width,
        "decoder_ffn_dim": 4 * width,
        "num_mel_bins": bins,
        "vocab_size": vocabulary,
    }


def t5(width, inner, layers, heads, **others) -> dict:
    return {
        "d_model": width,
        "d_ff": inner,
        "num_layers": layers,
        "num_heads": heads,
        "d_kv": 64,
        "vocab_size": 32128,
        "decoder_start_token_id": 0,
        "pad_token_id": 0,
        **others,
    }


MODELS = [
    PublishedModel(
        "gpt2", "gpt2", "GPT2LMHeadModel", 124_439_808, {"n_embd": 768, "n_layer": 12, "n_head": 12}
    ),
    PublishedModel(
        "gpt2-xl", "gpt2", "GPT2LMHeadModel", 1_557_611_200, {"n_embd": 1600, "n_layer": 48, "n_head": 25}
    ),
    PublishedModel("opt-125m", *OPT, 125_239_296, opt(768, 3072, 12, 12)),
    PublishedModel(
        "opt-350m",
        *OPT,
        331_196_416,
        opt(1024, 4096, 24, 16) | {"word_embed_proj_dim": 512, "do_layer_norm_before": False},
    ),
    PublishedModel("opt-1.3b", *OPT, 1_315_758_080, opt(2048, 8192, 24, 32)),
    PublishedModel("Llama-2-7B", *LLAMA, 6_738_415_616, decoder(4096, 11008, 32, 32, 32, 32000)),
    PublishedModel("Llama-2-13B", *LLAMA, 13_015_864_320, decoder(5120, 13824, 40, 40, 40, 32000)),
    PublishedModel(
        "Llama-3.2-1B", *LLAMA, 1_235_814_400, decoder(2048, 8192, 16, 32, 8, 128256, tied=True, head_dim=64)
    ),
    PublishedModel(
        "Llama-3.2-3B", *LLAMA, 3_212_749_824, decoder(3072, 8192, 28, 24, 8, 128256, tied=True, head_dim=128)
    ),
    PublishedModel("Llama-3.1-8B", *LLAMA, 8_030_261_248, decoder(4096, 14336, 32, 32, 8, 128256)),
    PublishedModel("Llama-3-70B", *LLAMA, 70_553_706_496, decoder(8192, 28672, 80, 64, 8, 128256)),
    PublishedModel(
        "Mistral-7B", "mistral", "MistralForCausalLM", 7_241_732_096, decoder(4096, 14336, 32, 32, 8, 32000)
    ),
    PublishedModel(
        "Mixtral-8x7B",
        "mixtral",
        "MixtralForCausalLM",
        46_702_792_704,
        decoder(4096, 14336, 32, 32, 8, 32000, num_local_experts=8, num_experts_per_tok=2),
    ),
    PublishedModel(
        "Qwen2.5-0.5B",
        "qwen2",
        "Qwen2ForCausalLM",
        494_032_768,
        decoder(896, 4864, 24, 14, 2, 151936, tied=True),
    ),
    PublishedModel(
        "Qwen2.5-7B", "qwen2", "Qwen2ForCausalLM", 7_615_616_512, decoder(3584, 18944, 28, 28, 4, 152064)
    ),
    PublishedModel(
        "Qwen1.5-MoE-A2.7B",
        "qwen2_moe",
        "Qwen2MoeForCausalLM",
        14_315_784_192,
        decoder(2048, 5632, 24, 16, 16, 151936)
        | {
            "num_experts": 60,
            "num_experts_per_tok": 4,
            "moe_intermediate_size": 1408,
            "shared_expert_intermediate_size": 5632,
        },
    ),
    PublishedModel(
        "Qwen3-0.6B",
        "qwen3",
        "Qwen3ForCausalLM",
        596_049_920,
        decoder(1024, 3072, 28, 16, 8, 151936, tied=True, head_dim=128),
    ),
    PublishedModel(
        "Qwen3-8B",
        "qwen3",
        "Qwen3ForCausalLM",
        8_190_735_360,
        decoder(4096, 12288, 36, 32, 8, 151936, head_dim=128),
    ),
    PublishedModel(
        "Qwen3-30B-A3B",
        "qwen3_moe",
        "Qwen3MoeForCausalLM",
        30_532_122_624,
        decoder(2048, 6144, 48, 32, 4, 151936, head_dim=128)
        | {"num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 768},
    ),
    PublishedModel(
        "gemma-2-2b",
        "gemma2",
        "Gemma2ForCausalLM",
        2_614_341_888,
        decoder(2304, 9216, 26, 8, 4, 256000, tied=True, head_dim=256)
        | {"attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0},
    ),
    PublishedModel(
        "gemma-2-9b",
        "gemma2",
        "Gemma2ForCausalLM",
        9_241_705_984,
        decoder(3584, 14336, 42, 16, 8, 256000, tied=True, head_dim=256)
        | {"attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0},
    ),
    PublishedModel(
        "gemma-3-1b",
        "gemma3_text",
        "Gemma3ForCausalLM",
        999_885_952,
        decoder(1152, 6912, 26, 4, 1, 262144, tied=True, head_dim=256),
    ),
    PublishedModel(
        "Phi-3-mini",
        "phi3",
        "Phi3ForCausalLM",
        3_821_079_552,
        decoder(3072, 8192, 32, 32, 32, 32064, pad_token_id=0),
    ),
    PublishedModel(
        "DeepSeek-V2-Lite",
        "deepseek_v2",
        "DeepseekV2ForCausalLM",
        15_706_484_224,
        decoder(2048, 10944, 27, 16, 16, 102400)
        | {
            "q_lora_rank": None,
            "kv_lora_rank": 512,
            "qk_rope_head_dim": 64,
            "qk_nope_head_dim": 128,
            "v_head_dim": 128,
            "n_routed_experts": 64,
            "n_shared_experts": 2,
            "num_experts_per_tok": 6,
            "moe_intermediate_size": 1408,
            "first_k_dense_replace": 1,
        },
    ),
    PublishedModel(
        "DeepSeek-V3",
        "deepseek_v3",
        "DeepseekV3ForCausalLM",
        0,  # 671 B without the module for multi-token prediction
        decoder(7168, 18432, 61, 128, 128, 129280)
        | {
            "q_lora_rank": 1536,
            "kv_lora_rank": 512,
            "qk_rope_head_dim": 64,
            "qk_nope_head_dim": 128,
            "v_head_dim": 128,
            "n_routed_experts": 256,
            "n_shared_experts": 1,
            "num_experts_per_tok": 8,
            "moe_intermediate_size": 2048,
            "first_k_dense_replace": 3,
            "n_group": 8,
            "topk_group": 4,
        },
    ),
    PublishedModel("t5-small", *T5, 60_506_624, t5(512, 2048, 6, 8)),
    PublishedModel("t5-base", *T5, 222_903_552, t5(768, 3072, 12, 12)),
    PublishedModel("bert-base", "bert", "BertModel", 109_482_240, bert(768, 3072, 12, 12)),
    PublishedModel("bert-base for words", "bert", "BertForMaskedLM", 109_514_298, bert(768, 3072, 12, 12)),
    PublishedModel("bert-large", "bert", "BertModel", 335_141_888, bert(1024, 4096, 24, 16)),
    PublishedModel(
        "bert-base classifier", "bert", "BertForSequenceClassification", 109_483_778, bert(768, 3072, 12, 12)
    ),
    PublishedModel(
        "vit-base",
        "vit",
        "ViTForImageClassification",
        86_567_656,
        {
            "hidden_size": 768,
            "intermediate_size": 3072,
            "num_hidden_layers": 12,
            "num_attention_heads": 12,
            "num_labels": 1000,
        },
    ),
    PublishedModel(
        "vit-large",
        "vit",
        "ViTForImageClassification",
        304_326_632,
        {
            "hidden_size": 1024,
            "intermediate_size": 4096,
            "num_hidden_layers": 24,
            "num_attention_heads": 16,
            "num_labels": 1000,
        },
    ),
    PublishedModel("whisper-tiny", *WHISPER, 37_760_640, whisper(384, 4, 6)),
    PublishedModel("whisper-small", *WHISPER, 241_734_912, whisper(768, 12, 12)),
    PublishedModel("whisper-large-v3", *WHISPER, 1_543_490_560, whisper(1280, 32, 20, 128, 51866)),
]
