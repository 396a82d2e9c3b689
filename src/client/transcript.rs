//! Reading transcripts: the tail backwards in blocks, the whole in one streaming pass.
