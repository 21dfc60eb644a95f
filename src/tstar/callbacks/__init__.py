"""A temperature schedule in a trainer that owns the loop: Lightning's, or transformers'."""
