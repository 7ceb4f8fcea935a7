"""Model configurations from the columns of a case: one function a class.

Runs in the environment of the case's release; transformers and torchvision are imported where they are used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Shape = dict[str, Any]


def gpt2(shape: Shape) -> Shape:
    return {
        "n_layer": shape["layers"],
        "n_embd": shape["hidden"],
        "n_head": shape["heads"],
        "n_inner": shape["ffn"],
        "n_positions": shape["max_pos"],
    }


def gpt_neo(shape: Shape) -> Shape:
    return {
        "num_layers": shape["layers"],
        "hidden_size": shape["hidden"],
        "num_heads": shape["heads"],
        "intermediate_size": shape["ffn"],
        "max_position_embeddings": shape["max_pos"],
        "attention_types": [[["global", "local"], shape["layers"] // 2]],
        "window_size": 256,
    }


def opt(shape: Shape) -> Shape:
    return {
        "num_hidden_layers": shape["layers"],
        "hidden_size": shape["hidden"],
        "word_embed_proj_dim": shape["hidden"],
        "num_attention_heads": shape["heads"],
        "ffn_dim": shape["ffn"],
        "max_position_embeddings": shape["max_pos"],
    }


def t5(shape: Shape) -> Shape:
    encoder, decoder = (int(layers) for layers in shape["layers"].split("+"))
    return {
        "num_layers": encoder,
        "num_decoder_layers": decoder,
        "d_model": shape["hidden"],
        "num_heads": shape["heads"],
        "d_kv": shape["d_kv"],
        "d_ff": shape["ffn"],
        "decoder_start_token_id": 0,
    }


def gpt_bigcode(shape: Shape) -> Shape:
    return gpt2(shape) | {"multi_query": shape["kv_heads"] == 1}


def decoder(shape: Shape) -> Shape:
    """Llama and what is built like it."""
    wanted = {
        "num_hidden_layers": shape["layers"],
        "hidden_size": shape["hidden"],
        "num_attention_heads": shape["heads"],
        "num_key_value_heads": shape["kv_heads"],
        "intermediate_size": shape["ffn"],
    }
    return wanted | ({"head_dim": shape["head_dim"]} if "head_dim" in shape else {})


def qwen3_5(shape: Shape) -> Shape:
    every = shape["full_attn_every"]
    return decoder(shape) | {
        "layer_types": [
            "full_attention" if (layer + 1) % every == 0 else "linear_attention"
            for layer in range(shape["layers"])
        ],
        "linear_num_key_heads": shape["linear_k_heads"],
        "linear_num_value_heads": shape["linear_v_heads"],
        "linear_key_head_dim": shape["linear_head_dim"],
        "linear_value_head_dim": shape["linear_head_dim"],
        "linear_conv_kernel_dim": shape["conv"],
    }


#: Class of the model: class of its configuration, and the configuration's arguments.
CLASSES: dict[str, tuple[str, Callable[[Shape], Shape]]] = {
    "GPT2LMHeadModel": ("GPT2Config", gpt2),
    "GPTNeoForCausalLM": ("GPTNeoConfig", gpt_neo),
    "OPTForCausalLM": ("OPTConfig", opt),
    "T5ForConditionalGeneration": ("T5Config", t5),
    "GPTBigCodeForCausalLM": ("GPTBigCodeConfig", gpt_bigcode),
    "LlamaForCausalLM": ("LlamaConfig", decoder),
    "MistralForCausalLM": ("MistralConfig", decoder),
    "GraniteForCausalLM": ("GraniteConfig", decoder),
    "Qwen2ForCausalLM": ("Qwen2Config", decoder),
    "Qwen3ForCausalLM": ("Qwen3Config", decoder),
    "Qwen3_5ForCausalLM": ("Qwen3_5TextConfig", qwen3_5),
}

#: What a model's public configuration has otherwise than the default of its class, by the model's name.
OTHERWISE: dict[str, Shape] = {
    "cerebras/Cerebras-GPT-111M": {"activation_function": "gelu"},
}

#: torchvision's v3-large, as the authors' own table of 15 blocks has it: the stock builder's settings.
VISION_HEADS = {"MnasNet": 10, "MobeNetV3Large": 10, "MobeNetV3Small": 10}
VISION_BUILDERS = {
    "ConvNeXtTiny": "convnext_tiny",
    "ConvNeXtBase": "convnext_base",
    "MnasNet": "mnasnet1_0",
    "MobeNetV3Large": "mobilenet_v3_large",
    "MobeNetV3Small": "mobilenet_v3_small",
    "MobileNetV2": "mobilenet_v2",
    "RegNetX400MF": "regnet_x_400mf",
    "RegNetY400MF": "regnet_y_400mf",
    "ResNet101": "resnet101",
    "ResNet152": "resnet152",
    "VGG16": "vgg16",
    "VGG19": "vgg19",
}


def language_config(shape: Shape, attention: str, name: str = "") -> tuple[type, Any]:
    """The model's class and its configuration."""
    import transformers

    class_name = shape["cls"].split(" ")[0]
    config_name, arguments = CLASSES[class_name]
    config = getattr(transformers, config_name)(
        vocab_size=shape["vocab"],
        tie_word_embeddings=shape["tied"],
        **arguments(shape),
        **OTHERWISE.get(name, {}),
    )
    config._attn_implementation = attention
    return getattr(transformers, class_name), config


def vision_model(name: str) -> Any:
    import torchvision

    builder = getattr(torchvision.models, VISION_BUILDERS[name])
    return builder(weights=None, num_classes=VISION_HEADS.get(name, 1000))
