//! (to come) regret.
