//! Token usage of API messages, each counted once.
