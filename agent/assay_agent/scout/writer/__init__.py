"""From digests to insights: one module per family of questions, ranked together by the size of what they show. Pure."""
