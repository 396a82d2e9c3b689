//! Prices and context windows by model id.
