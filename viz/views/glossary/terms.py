"""The terms of the glossary as data, in the order of the alphabet."""

from dataclasses import dataclass

ALL_HEADS = "pages/all_heads.py"
ATTENTION = "pages/attention.py"
COST = "pages/shapes_and_cost.py"
ENCODER_DECODER = "pages/encoder_decoder.py"
FEED_FORWARD = "pages/feed_forward.py"
LABORATORY = "pages/laboratory.py"
LAYER_NORM = "pages/layer_norm.py"
POSITIONS = "pages/positions.py"
PREDICTION = "pages/prediction.py"
TOKENS = "pages/tokens.py"
TRAINING = "pages/training.py"
WORKED = "pages/worked_examples.py"


@dataclass(frozen=True)
class Term:
    """A term, what it means in one sentence, and the page where it is used.

    example: the worked example that shows it with numbers. also: other names of the same thing.
    """

    name: str
    meaning: str
    page: str
    example: str | None = None
    also: tuple[str, ...] = ()


TERMS: tuple[Term, ...] = (
    Term(
        "Ablation",
        "Setting the output of a part, such as one head, to zero, to see what the model does "
        "without it.",
        ALL_HEADS,
    ),
    Term(
        "Attention",
        "A weighted sum of the values of all tokens, with weights that each token works out for "
        "itself from its query and the others' keys.",
        ATTENTION,
        "the-cat-sat",
    ),
    Term(
        "Attention rollout",
        "The weights of all layers multiplied with one another, the shortcuts counted in, as an "
        "estimate of how much each output draws on each input token.",
        ALL_HEADS,
    ),
    Term(
        "Attention sink",
        "A token, often the first one, on which heads put their weight when they find nothing else "
        "to look at.",
        ALL_HEADS,
    ),
    Term(
        "Batch norm",
        "A norm that takes mean and variance of one feature over all samples of a batch, where "
        "layer norm takes them over all features of one sample.",
        LAYER_NORM,
        "houses",
        ("batch normalization",),
    ),
    Term(
        "Biased variance",
        "The sum of the squared deviations divided by n instead of n − 1, as the norms of "
        "transformers use it.",
        LAYER_NORM,
        "biased-and-unbiased",
    ),
    Term(
        "Byte pair encoding",
        "A way to make a vocabulary: start from single bytes and merge, again and again, the two "
        "neighbouring pieces that occur together most often.",
        TOKENS,
        "words-and-tokens",
        ("BPE",),
    ),
    Term(
        "Causal mask",
        "A mask that closes the future: each token may look at itself and at the tokens before it.",
        ATTENTION,
        "look-ahead-mask",
        ("look-ahead mask",),
    ),
    Term(
        "Checkpoint",
        "The weights of a model as they stood at one step of its training.",
        TRAINING,
    ),
    Term(
        "Combined mask",
        "A causal mask and a padding mask at once: a key is open only where both leave it open.",
        ATTENTION,
        "combined-mask",
    ),
    Term(
        "Concatenation",
        "Writing the outputs of all heads side by side, so that h vectors of width dᵥ make one of "
        "width h · dᵥ.",
        COST,
        "ladder-multi-head",
    ),
    Term(
        "Context length",
        "The largest number of tokens that a model can read at once.",
        COST,
        "sliding-windows",
        ("context window",),
    ),
    Term(
        "Contextual embedding",
        "The vector of a token after attention, which is another one in another sentence.",
        TOKENS,
        "same-word-two-sentences",
    ),
    Term(
        "Counterfactual",
        "A run of a trained model with something changed that it never learned with, which shows "
        "what the changed part does and not how a model trained that way would behave.",
        LABORATORY,
    ),
    Term(
        "Cross-attention",
        "Attention whose queries come from the decoder, and whose keys and values come from the "
        "output of the encoder.",
        ENCODER_DECODER,
        "decoder-layer",
    ),
    Term(
        "Cross-entropy loss",
        "Minus the logarithm of the probability that the model gave to the token that really came.",
        PREDICTION,
        "most-probable-word",
        ("loss",),
    ),
    Term(
        "Decoder",
        "The stack that writes: its self-attention is causal, and in an encoder–decoder it also "
        "looks at the encoder's output.",
        ENCODER_DECODER,
        "decoder-layer",
    ),
    Term(
        "Dropout",
        "Setting a random share p of the values to zero while training and dividing the rest by "
        "1 − p, and doing nothing afterwards.",
        FEED_FORWARD,
        "dropout-by-hand",
    ),
    Term(
        "Embedding",
        "The vector that a model has learned for a token: one row of a table, looked up by the "
        "token's id.",
        TOKENS,
        "look-up-is-one-hot",
        ("token embedding",),
    ),
    Term(
        "Encoder",
        "The stack that reads: every token may look at every other, before it and after it.",
        ENCODER_DECODER,
        "encoder-layer",
    ),
    Term(
        "Encoder–decoder",
        "A model of two stacks, for tasks such as translation: the encoder reads the source, and "
        "the decoder writes the target while it looks at what the encoder made of it.",
        ENCODER_DECODER,
        "sequence-in-three-steps",
        ("encoder-decoder",),
    ),
    Term(
        "Entropy",
        "How spread out a row of weights or probabilities is: 0 if all lies on one place, and the "
        "logarithm of n if it is shared evenly by n.",
        PREDICTION,
        "variance-of-a-dot-product",
    ),
    Term(
        "Explicit pass",
        "A run that computes scores, masked scores and weights one after another, where the usual "
        "run leaves all of it to a fused kernel.",
        ATTENTION,
        "four-classes-agree",
    ),
    Term(
        "Feed-forward",
        "The sub-layer after attention: a linear map to a wider vector, an activation, in some models "
        "a gate, and a linear map back, for each token by itself.",
        FEED_FORWARD,
        "feed-forward-position-wise",
        ("feed-forward network", "FFN", "MLP"),
    ),
    Term(
        "Fill value",
        "The number that is written in the place of a masked score: −∞, or one so low that its "
        "exponential is 0.",
        ATTENTION,
        "fill-values",
    ),
    Term(
        "FLOPs",
        "The number of floating-point operations, each an addition or a multiplication, that a "
        "computation takes.",
        COST,
        "memory-and-operations",
    ),
    Term(
        "Fused kernel",
        "One piece of code that computes all of attention in a single go, without keeping the table "
        "of scores.",
        COST,
    ),
    Term(
        "GELU",
        "An activation, x · Φ(x): it passes large numbers on, brings very negative ones to 0, and "
        "is smooth in between.",
        FEED_FORWARD,
        "gelu",
    ),
    Term(
        "GPT",
        "A family of models that are decoders alone: they read a text from left to right and "
        "predict each next token.",
        ATTENTION,
        "gpt-2-parameters",
        ("decoder-only",),
    ),
    Term(
        "Greedy decoding",
        "Writing the most probable token each time, without drawing lots.",
        PREDICTION,
        "sequence-in-three-steps",
    ),
    Term(
        "Head",
        "One of several attentions that run side by side in a layer, each with queries of its own; keys "
        "and values are its own too, or shared with a few other heads.",
        ATTENTION,
        "one-matrix-then-split",
        ("attention head",),
    ),
    Term(
        "Induction head",
        "A head that looks for an earlier place where the present token stood, and at the token "
        "that followed it there.",
        ALL_HEADS,
    ),
    Term(
        "Key",
        "The vector by which a token is found: the others' queries are compared with it.",
        ATTENTION,
        "soft-look-up",
        ("K", "keys"),
    ),
    Term(
        "KL divergence",
        "How far one distribution of probabilities lies from another: 0 if they are equal, and "
        "larger the more they part.",
        PREDICTION,
        None,
        ("Kullback–Leibler divergence",),
    ),
    Term(
        "KV cache",
        "The keys and values of the tokens so far, kept while a text is written, so that each new "
        "token computes its own alone.",
        COST,
        "all-positions-at-once",
    ),
    Term(
        "Layer norm",
        "Takes from each token's vector its own mean, divides it by its own standard deviation, "
        "then scales by γ and shifts by β.",
        LAYER_NORM,
        "layer-norm-by-hand",
        ("layer normalization", "LayerNorm"),
    ),
    Term(
        "Learned positions",
        "A table with one vector for each position, learned like the embeddings and added to them.",
        POSITIONS,
        "learned-positions",
    ),
    Term(
        "Logit lens",
        "Reading the stream after each layer through the model's own output step, as if no layer "
        "came after it.",
        PREDICTION,
    ),
    Term(
        "Logits",
        "One number for each token of the vocabulary, before the softmax turns them into "
        "probabilities.",
        PREDICTION,
        "most-probable-word",
        ("logit",),
    ),
    Term(
        "Mask",
        "A table that says which keys each query may look at.",
        ATTENTION,
        "combined-mask",
    ),
    Term(
        "Multi-head attention",
        "Several heads side by side on the same tokens, their outputs written one beside the other "
        "and mixed by W_O.",
        ATTENTION,
        "ladder-multi-head",
    ),
    Term(
        "Neuron",
        "One number of the wide vector inside a feed-forward, after its activation.",
        FEED_FORWARD,
        "feed-forward-position-wise",
    ),
    Term(
        "Output of attention",
        "The sum of the values, each times its weight: what a head hands on for one token.",
        ATTENTION,
        "weighted-sum-of-cat",
        ("output", "context vector", "context"),
    ),
    Term(
        "Padding mask",
        "A mask that closes the empty places with which a short sequence of a batch was filled up.",
        ATTENTION,
        "padding-mask",
    ),
    Term(
        "Permutation equivariance",
        "Without positions, attention gives the same vectors in another order when its tokens come "
        "in another order.",
        POSITIONS,
        "lion-kills-tiger",
    ),
    Term(
        "Perplexity",
        "The exponential of the mean cross-entropy loss: among so many equally likely tokens the "
        "model might as well have guessed.",
        PREDICTION,
    ),
    Term(
        "Positional encoding",
        "What tells a model where a token stands, since attention by itself does not know the order "
        "of the tokens.",
        POSITIONS,
        "embedding-plus-position",
        ("position",),
    ),
    Term(
        "Post-norm",
        "A layer norm after each sum of sub-layer and shortcut, as in the first transformer and in "
        "BERT.",
        LAYER_NORM,
        "where-the-norm-stands",
        ("post-LN",),
    ),
    Term(
        "Pre-norm",
        "A layer norm before each sub-layer, with the shortcut left alone, as in GPT-2.",
        LAYER_NORM,
        "where-the-norm-stands",
        ("pre-LN",),
    ),
    Term(
        "Previous-token head",
        "A head in which each token looks at the one just before it.",
        ALL_HEADS,
    ),
    Term(
        "Probability",
        "A number from 0 to 1 that the softmax makes of a logit: those of all tokens sum to 1.",
        PREDICTION,
        "most-probable-word",
    ),
    Term(
        "Query",
        "The vector with which a token looks for others: its dot product with a key is a score.",
        ATTENTION,
        "soft-look-up",
        ("Q", "queries"),
    ),
    Term(
        "ReLU",
        "The simplest activation: it leaves numbers above 0 as they are and makes all others 0.",
        FEED_FORWARD,
        "relu-and-gelu",
    ),
    Term(
        "Residual stream",
        "The row of numbers of a token on its way through the layers, to which each sub-layer adds "
        "its output.",
        FEED_FORWARD,
        "where-the-norm-stands",
        ("stream",),
    ),
    Term(
        "RMS norm",
        "A layer norm that takes no mean away and divides by the root of the mean square.",
        LAYER_NORM,
        None,
        ("RMSNorm",),
    ),
    Term(
        "Rotary positions",
        "Turning each query and key by an angle that grows with its position, so that a score "
        "depends on how far the two stand apart.",
        POSITIONS,
        "rotary-positions",
        ("rotary positional encoding", "RoPE"),
    ),
    Term(
        "Scaled score",
        "A score divided by √dₖ, which keeps its spread the same however wide queries and keys are.",
        ATTENTION,
        "two-keys-scaled",
    ),
    Term(
        "Score",
        "The dot product of a query and a key: how well the two match, before the softmax.",
        ATTENTION,
        "the-cat-sat",
    ),
    Term(
        "Self-attention",
        "Attention of the tokens of one sequence to one another: queries, keys and values all come "
        "from it.",
        ATTENTION,
        "the-cat-sat",
    ),
    Term(
        "Shortcut",
        "The way around a sub-layer: its input is added to its output.",
        FEED_FORWARD,
        "residual-gradient",
        ("residual connection", "skip connection"),
    ),
    Term(
        "Sinusoidal positions",
        "Sines and cosines of the position at slower and slower rates, added to the embeddings and "
        "not learned.",
        POSITIONS,
        "sinusoidal-table",
        ("sinusoidal positional encoding",),
    ),
    Term(
        "Softmax",
        "Turns a row of numbers into shares that sum to 1: the exponential of each, divided by the "
        "sum of all.",
        ATTENTION,
        "softmax-of-three",
    ),
    Term(
        "Special token",
        "A token that stands for no text, such as the start, the end or an empty place.",
        TOKENS,
        "padding-mask",
    ),
    Term(
        "Stride",
        "How far the window moves on between two training samples cut from one text.",
        TOKENS,
        "sliding-windows",
    ),
    Term(
        "SwiGLU",
        "A feed-forward whose wide vector is multiplied, number by number, by a gate that another "
        "linear map computes.",
        FEED_FORWARD,
        "swiglu",
    ),
    Term(
        "Teacher forcing",
        "Training a decoder on the right tokens so far, whatever it would have written itself, so "
        "that all positions can be learned at once.",
        ENCODER_DECODER,
        "all-positions-at-once",
    ),
    Term(
        "Temperature",
        "A number by which the logits are divided before the softmax: below 1 the choice becomes "
        "surer, above 1 more even.",
        PREDICTION,
    ),
    Term(
        "Token",
        "A piece of text with a number of its own: a word, a part of one, a sign or a byte.",
        TOKENS,
        "words-and-tokens",
    ),
    Term(
        "Top-k",
        "Drawing the next token from the k most probable ones alone.",
        PREDICTION,
    ),
    Term(
        "Top-p",
        "Drawing the next token from the fewest tokens whose probabilities together reach p.",
        PREDICTION,
        None,
        ("nucleus sampling",),
    ),
    Term(
        "Trace",
        "What one run of a model leaves behind for these pages: its queries, keys, values, masks, "
        "outputs, norms and stream.",
        ATTENTION,
    ),
    Term(
        "Value",
        "The vector that a token hands over to those that look at it.",
        ATTENTION,
        "soft-look-up",
        ("V", "values"),
    ),
    Term(
        "Vocabulary",
        "All the tokens that a model knows, each with its id.",
        TOKENS,
        "to-the-vocabulary",
    ),
    Term(
        "W_O",
        "The matrix that mixes the outputs of all heads, written side by side, into one vector for "
        "each token.",
        ATTENTION,
        "ladder-multi-head",
        ("output projection",),
    ),
    Term(
        "Weight",
        "A score after the softmax: the share, from 0 to 1, that a query takes of a key's value.",
        ATTENTION,
        "softmax-over-keys",
        ("attention weight",),
    ),
    Term(
        "Weight tying",
        "Using one matrix both as the table of embeddings and, turned round, as the output layer.",
        COST,
        "gpt-2-parameters",
    ),
    Term(
        "Word piece",
        "A part of a word that stands in the vocabulary of models such as BERT, with ## before it "
        "where it goes on from another piece.",
        TOKENS,
        None,
        ("WordPiece",),
    ),
    Term(
        "γ and β",
        "The two vectors that a layer norm learns: γ multiplies each normalized number, and β is "
        "added to it.",
        LAYER_NORM,
        "layer-norm-by-hand",
        ("gamma", "beta", "γ", "β"),
    ),
)
