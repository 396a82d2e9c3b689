//! (to come) budget.
