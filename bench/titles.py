"""What each measured part is called, and what was measured."""

TITLES = {
    "recording": "What recording a pass costs",
    "cuda": "What recording a pass costs on a GPU",
    "training": "What a record of a training costs",
    "score": "One score split into its parts",
    "patching": "The map of head patches",
    "many": "Many prompts in one table",
    "research": "Eight tasks of a study, beside TransformerLens",
    "profiling": "What a profile over a corpus costs",
    "engines": "Profiles by several workers, in processes and on Ray",
    "sessions": "Many visitors: heads and masks switched without a pause",
    "weight": "All heads of a model of 12 layers and 12 heads, every one opened",
    "notebook": "What the widget sends in a notebook",
    "installing": "What an installation takes",
    "clicks": "From a click to the picture",
    "page_switch": "Another page, and what the frame around it takes",
    "first_picture": "From the start of the server to the first picture",
    "long_texts": "Long texts",
    "real_model": "The first picture with a real language model",
    "site": "The site without a server",
    "classroom": "A class at work",
    "bounds": "Memory beside its bounds",
    "soak": "A class beside hostile sessions",
    "cluster": "Models on a cluster, beside models in the app",
    "cluster_soak": "A class on a cluster that loses an actor and a replica",
    "own_tests": "What `make test` takes",
}

NOTES = {
    "first_picture": (
        "Beside a plain page of Streamlit with one Plotly heatmap. In turn: a server is started, and a "
        "browser that has been nowhere opens its page as soon as the address answers. The app shows a "
        "recorded run of the sentence first, which says so, until the model is there; its cells are drawn by "
        "the canvas, and again by Plotly, once that is read."
    ),
    "installing": (
        "pip installs the wheel into an empty environment, its cache warm; PyTorch is the build named above. "
        "Imports are the median of five processes, Python's compiled files in place."
    ),
    "training": (
        "Steps of AdamW on batches of 8 texts of 128 tokens, in a plain loop, and the recorded step between "
        "them: two probe texts of 32 tokens each, their statistics, and the file written anew. The share is "
        "that of a training that is recorded every 100 steps."
    ),
    "cluster": (
        "The cluster is two machines on the same computer, so app, actor and visitors share its cores. "
        "Clicks as above: each session switches heads and masks without a pause. Below: one process asks "
        "for texts which are new to both."
    ),
    "cluster_soak": (
        "The class as above, on two replicas of the app; the model is two actors on a cluster of two "
        "machines of the same computer. Each answer is held against what was computed beforehand."
    ),
    "soak": (
        "The class as above, alone and beside sessions of which one reconnects without a pause, one "
        "asks for large answers and does not read them, one sends messages in bursts, one opens pages and "
        "forgets them, and one sends half requests."
    ),
    "bounds": (
        "The server's whole process. First row: the pages rotate three models of 129 MB; second row: "
        "each page has a text of its own of 990 or 400 tokens in a random model of GPT-2's size (475 MB). "
        "Kept is what `/metrics` reports, where a trace counts with all its logits, made or not. The peak is "
        "that of the passes and of reading the models' files; what they freed goes back within seconds."
    ),
    "long_texts": (
        "From Enter in the sentence box to the first picture, then from a click to another head, where the "
        "model is loaded already. Memory is that of the server's whole process: before the text, after it, "
        "and the most. For 8,192 words the owner sets `ATTENTION_LONGEST_TEXT=50000`."
    ),
    "classroom": (
        "From an act to the end of the server's answer. A page is another page and the way back, of which "
        "the slower counts. Each answer's tokens and the attention's output in it are held against those "
        "computed beforehand for that session's own sentence, layer and mask, and every message is searched "
        "for other sessions' sentences."
    ),
    "site": (
        "A cold page over 10 Mbit/s with a processor four times slower: its first picture, then the answer "
        "to the first sentence that is typed, for which the model is read. Then a switch of the mask at full "
        "speed. In brackets: the page's own thread on a processor."
    ),
    "recording": (
        "Random weights of GPT-2's size (124M). Ratios are to the same library's plain pass; memory is "
        "the peak of the whole process, and what of it lies above the loaded model."
    ),
    "cuda": (
        "As above, on a CUDA device; memory is the peak of what PyTorch holds there. A short pass waits for "
        "Python, which gives the device its work kernel by kernel."
    ),
    "patching": (
        "The output of each head of one text is put into the run of another, one at a time, in a random "
        "model of GPT-2's size; beside TransformerLens's own function for it."
    ),
    "many": (
        "Of each head of each prompt the weight between two words and the entropy, and of each prompt the "
        "difference of two logits; beside a loop of `Model.trace` and `Attention.weights`. Memory is the "
        "peak of the whole process; the table has a row for each head of each prompt."
    ),
    "research": (
        "The scripts of [From a question to a figure](../research.md), and [the same with TransformerLens "
        "and Plotly](../../bench/research/by_transformer_lens), which load the same weights: from the "
        "loading of the model to the files that are written, imports left out. Lines of code, all by one "
        "formatter. The profile over a corpus adds up much more than the column that is compared. The eighth "
        "task is one whole run in both. Compared is every number from which a script takes what it prints."
    ),
    "profiling": (
        "A random model of GPT-2's size, windows of 256 tokens, one thread a process; plain passes and "
        "profiled windows in turn. The other libraries hand out the weights of all heads, and of these the "
        "same code makes the same sums; ours also sums what values carry and the effects on the logit of the "
        "next token. Every plain pass computes all logits, as the others do for a profile too; ours leaves "
        "them out, because it does not need them. The small model has one layer of two heads."
    ),
    "engines": (
        "A random model of GPT-2's size, windows of 256 tokens, one thread a worker, all on this machine. "
        "Ray is started for each run. Ready: when every worker has its model."
    ),
    "score": "In the last layer of a random model of GPT-2's size: 12 layers of 12 heads.",
    "sessions": "Each session has its own sentence and asks again as soon as it is answered.",
    "weight": (
        "Ours: what comes over the network while every layer and head is opened, and the largest page. "
        "BertViz: its HTML of the same weights."
    ),
    "notebook": (
        "Bytes of the widget's state for one layer of 12 heads of a random model of GPT-2's size, with its "
        "queries, keys, values, outputs and the maps of all heads; another head of the layer sends nothing. "
        "BertViz: its HTML of the weights alone."
    ),
    "page_switch": (
        "Time of a processor that the whole server spends on a page. The frame is the menu, the work bar, "
        "the map of the model and the links below. Two servers in turn, one of which leaves the frame out. "
        "Below, in a browser: from the release of the mouse on the menu to the frame that shows the whole "
        "page, beside a page with Streamlit's own menu that has the sentence and the choice of a model above "
        "it."
    ),
    "real_model": (
        "The first picture on a server that nobody has visited, that has the model's files on its disk and "
        "has been left until it rests. In a new browser, from the address to the picture of the page "
        "Attention, and until everything is drawn: the canvas shows the picture first, and Plotly, once its "
        "script is read, draws it again. Then another sentence, the page opened anew. By Home's offer: on "
        "Home, from the click to its picture. Memory is that of the server's whole process; with 8 GB, "
        "SmolLM2 is loaded before anybody opens it."
    ),
    "clicks": (
        "From the click's time stamp to the frame that shows it, in a headless Chromium without a "
        "graphics card, server and browser on the same machine. What comes from the server is shown by the "
        "canvas first: that frame counts, and Plotly's picture follows it."
    ),
    "own_tests": (
        "Once all is installed; types are checked anew. A group is a folder of tests: its seconds of a "
        "processor are those of the workers and of their browsers, its wall that of all workers together."
    ),
}
