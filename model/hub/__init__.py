"""Any model of Hugging Face's library, through our `attend`, proven at load."""
